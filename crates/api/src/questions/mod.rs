//! What may be asked: a file for each question or small family, with its parameters, its answer, and how that is shown.
//!
//! A question is a type. Its fields are its parameters, on the wire and on the command line; its documentation is the help and
//! the page in `docs/questions.md`. The list below makes of all of them what is sent, what dispatches it, and the commands of
//! `millrace ctl`. To ask for something new takes such a type, a line in the list, and an answer in `upf` ([`Answers`]).

mod applications;
mod drops;
mod dump;
mod flows;
mod lookups;
mod mirror;
mod n4;
mod nat;
mod network;
mod offload;
mod pfds;
mod ports;
mod process;
mod qos;
mod scale;
mod session;
mod sessions;
mod slices;
mod workers;

pub use applications::*;
pub use drops::*;
pub use dump::*;
pub use flows::*;
pub use lookups::*;
pub use mirror::*;
pub use n4::*;
pub use nat::*;
pub use network::*;
pub use offload::*;
pub use pfds::*;
pub use ports::*;
pub use process::*;
pub use qos::*;
pub use scale::*;
pub use session::*;
pub use sessions::*;
pub use slices::*;
pub use workers::*;

use crate::protocol::{CtlError, Told};
use crate::table::Page;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Something to ask a UPF.
pub trait Question: JsonSchema + Clone + Into<Request> {
    /// What it is called: `ask` on the wire.
    const NAME: &'static str;
    /// What its answer is called: `answer` on the wire.
    const ANSWER: &'static str = Self::NAME;
    /// The page in `docs/` that tells what the answer means; empty: there is none.
    const SEE: &'static str = "";
    /// What comes back.
    type Answer: JsonSchema + Serialize + DeserializeOwned + PartialEq + Debug;

    /// The answer for people.
    fn show(&self, answer: &Self::Answer) -> Page;
}

/// Who can answer a question. It is called from the threads of those who ask, several at once; it may take a while, but has to come back.
pub trait Answers<Q: Question> {
    /// The answer.
    fn answer(&self, question: Q) -> Result<Q::Answer, CtlError>;
}

/// What is done with a question of whatever kind.
pub trait Visit {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<Q: Question>(self, question: &Q) -> Self::Output;
}

/// What is done for each kind of question.
pub trait Each {
    /// Does it for one of them.
    fn each<Q: Question>(&mut self);
}

/// The list: questions that are commands of their own, with the type that the command line is read into, and those that another
/// one's command asks.
macro_rules! questions {
    ($($name:ident: $command:ident),+ ; $($inner:ident),+) => {
        /// A question of whatever kind.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(tag = "ask", rename_all = "kebab-case")]
        pub enum Request {
            $(#[doc = concat!("[`", stringify!($name), "`].")] $name($name),)+
            $(#[doc = concat!("[`", stringify!($inner), "`].")] $inner($inner),)+
        }

        $(impl From<$name> for Request {
            fn from(question: $name) -> Self {
                Self::$name(question)
            }
        })+
        $(impl From<$inner> for Request {
            fn from(question: $inner) -> Self {
                Self::$inner(question)
            }
        })+

        /// Who can answer all questions.
        pub trait AnswersAll: $(Answers<$name> +)+ $(Answers<$inner> +)+ {}

        impl<T: $(Answers<$name> +)+ $(Answers<$inner> +)+> AnswersAll for T {}

        impl Request {
            /// Has it answered.
            pub fn answered(self, by: &impl AnswersAll) -> Result<Told, CtlError> {
                match self {
                    $(Self::$name(question) => Told::new::<$name>(&by.answer(question)?),)+
                    $(Self::$inner(question) => Told::new::<$inner>(&by.answer(question)?),)+
                }
            }

            /// Does something with it, whatever its kind.
            pub fn visit<V: Visit>(&self, visitor: V) -> V::Output {
                match self {
                    $(Self::$name(question) => visitor.visit(question),)+
                    $(Self::$inner(question) => visitor.visit(question),)+
                }
            }

            /// Does something for every kind.
            pub fn each(with: &mut impl Each) {
                $(with.each::<$name>();)+
                $(with.each::<$inner>();)+
            }
        }

        /// What `millrace ctl` can ask.
        #[cfg(feature = "clap")]
        #[derive(Clone, Debug, clap::Subcommand)]
        pub enum Command {
            $(#[allow(missing_docs)] $name($command),)+
        }

        #[cfg(feature = "clap")]
        impl From<Command> for Request {
            fn from(command: Command) -> Self {
                match command {
                    $(Command::$name(command) => command.into(),)+
                }
            }
        }
    };
}

questions! {
    Version: Version,
    Sessions: Sessions,
    Session: Session,
    Ports: Ports,
    Drops: Drops,
    Workers: WorkersCommand,
    Peers: Peers,
    Pfds: Pfds,
    N4: N4Command,
    Flows: FlowsCommand,
    Applications: Applications,
    Slices: Slices,
    Qos: Qos,
    Scale: Scale,
    Mirror: MirrorCommand,
    Nat: Nat,
    Offload: Offload,
    Lookups: Lookups,
    Routes: Routes,
    Neighbours: Neighbours,
    Gnbs: Gnbs,
    Pools: Pools,
    Config: Config,
    Dump: Dump,
    Stop: Stop;
    Stages, N4Log, FlowMarks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Looks at the question that is written so.
    struct Name;

    impl Visit for Name {
        type Output = &'static str;

        fn visit<Q: Question>(self, _: &Q) -> &'static str {
            Q::NAME
        }
    }

    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl Each for Names {
        fn each<Q: Question>(&mut self) {
            self.0.push(Q::NAME);
        }
    }

    #[test]
    fn questions_are_asked_by_their_names() {
        let mut names = Names::default();
        Request::each(&mut names);
        for name in names.0 {
            // Only copies have to be told what is to be done.
            let asked =
                if name == "mirror" { json!({"ask": name, "do": "list"}) } else { json!({"ask": name}) };
            let request: Request = serde_json::from_value(asked.clone()).unwrap();
            assert_eq!(request.visit(Name), name);
            let written = serde_json::to_value(&request).unwrap();
            assert_eq!(written["ask"], name);
            assert_eq!(serde_json::from_value::<Request>(written).unwrap(), request);
        }
    }

    #[test]
    fn parameters_are_known_by_name() {
        let read = |value: Value| serde_json::from_value::<Request>(value);
        let request = read(json!({"ask": "sessions", "limit": 3, "ue": "10.0.0.1"})).unwrap();
        let ue = Some([10, 0, 0, 1].into());
        assert_eq!(request, Sessions { limit: 3, ue, ..Sessions::default() }.into());
        assert!(read(json!({"ask": "sessions", "limits": 3})).is_err());
        assert!(read(json!({"ask": "weather"})).is_err());
        // Only on the command line.
        assert_eq!(
            serde_json::to_value(Request::from(Flows { all: true })).unwrap(),
            json!({"ask": "flows"})
        );
    }

    proptest! {
        #[test]
        fn any_line_is_a_request_or_an_error(line in "\\PC{0,64}", seid in "[-+x0-9a-f]{0,20}") {
            let _ = serde_json::from_str::<Request>(&line);
            let _ = serde_json::from_str::<Request>(&format!("{{\"ask\":\"session\",\"seid\":\"{seid}\"}}"));
        }
    }
}
