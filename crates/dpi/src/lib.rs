//! Which application is this flow?
//!
//! **Problem.** A rule may ask for the packets of an application, an operator wants to know what a network carries, and neither is written in
//! a packet's headers. It shows in the first few packets of a flow: in what its protocol says (a name in a ClientHello, a Host field, a question),
//! or in how it behaves where all else is ciphered. Somebody has to look, once, cheaply, and without ever being brought down by what it sees.
//!
//! **Model.** Five stages, each of which can be used alone: a packet is *prepared* (what is inside which tunnels; fragments put together), put
//! into *order* (optional), *classified*, *decoded* (optional), and *timers* end what nobody continues. Nobody is called back: packets are
//! pushed, results are polled.
//!
//! | module | answers |
//! |---|---|
//! | [`protocol`], [`category`] | which protocols are known, and what they are for |
//! | [`prepare`] | what is inside this frame |
//! | [`reorder`] | what does a stream carry, in order |
//! | [`classify`] | which protocol does a flow speak, of which application is it, and why |
//! | [`decode`] | what do messages say: requests, answers, hellos, names, calls |
//! | [`track`] | whose flow is a packet of |
//! | [`knowledge`] | what all workers share |
//! | [`conversation`] | classification alone, for those who track flows themselves |
//! | [`inspector`] | all of it at once |
//! | [`protocols`] | what does a message of this protocol look like |
//! | [`signatures`] | whose are this name, this address, this user agent: which application |
//! | [`kpi`] | how well does it work |
//! | [`behaviour`] | what does a flow do, if it doesn't say what it is |
//!
//! Nothing here has a clock, a socket, a thread or a lock: bytes and time are arguments, one instance belongs to one worker.
#![forbid(unsafe_code)]

pub mod behaviour;
pub mod category;
pub mod classify;
pub mod conversation;
pub mod decode;
pub mod inspector;
pub mod knowledge;
pub mod kpi;
pub mod prepare;
pub mod protocol;
pub mod protocols;
pub mod reorder;
pub mod signatures;
pub mod track;

pub use category::Category;
pub use classify::{Packet, Verdict};
pub use inspector::{By, Cause, Counters, Event, Inspector, Options};
pub use knowledge::Knowledge;
pub use protocol::Protocol;
