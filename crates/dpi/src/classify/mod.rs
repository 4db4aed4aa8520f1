//! Which protocol does a flow speak?
//!
//! **Model.** A [`Recogniser`] knows one protocol. It is shown a [`Message`]: a datagram, or a stream from its beginning, and answers
//! ([`Answer`]). It keeps nothing itself: what was said before on the flow is in the message's [`History`], and a stream that has to be put together
//! is put together for it, when it answers [`Answer::Longer`].

pub mod assembly;
pub mod classifier;
pub mod examination;
pub mod message;
pub mod recogniser;
pub mod transport;
pub mod verdict;

pub use assembly::Assembly;
pub use classifier::Classifier;
pub use examination::{Desk, Examination, Limits, Progress, Room, Segment, Shown, Step};
pub use message::{Carrier, End, History, Message, Past, Sheet, Side, Text};
pub use recogniser::{Answer, Carriers, First, Mark, Places, Recogniser, Strength};
pub use transport::Packet;
pub use verdict::{Confidence, Evidence, Reason, Verdict};
