//! Which application has this host name, this address, this user agent?
//!
//! **Problem.** What a flow is for is not in its packets, but the names that they show (in a ClientHello, a Host field, a question) are those of
//! somebody, and who that is can be written down. There are thousands of such names, they change monthly, and users know some that nobody else knows.
//!
//! **Model.** *Signatures* are rules of applications, in TOML files (`signatures/` in the repository is built in). A [`Builder`] reads files,
//! in layers, and takes rules from programs, says all that is wrong with them at once ([`Findings`]), and makes a [`Bundle`]: immutable,
//! shared by `Arc`, swapped as a whole. A bundle answers each question with a [`Match`]: the application, and the rule that said so.
//!
//! ```
//! use dpi::signatures::Bundle;
//! let bundle = Bundle::built_in();
//! let found = bundle.host(b"r3---sn-4g5e6nsz.googlevideo.com").ok_or("nobody's")?;
//! assert_eq!(&*bundle.application(found.application).display, "YouTube");
//! let rule = bundle.rule(found.rule).ok_or("it has none")?;
//! assert_eq!((rule.text, rule.file), ("googlevideo.com", "signatures/google.toml"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Precedence.** A layer above wins over all below it; within a layer the longest suffix, prefix or word wins. Which *kind* of evidence wins over
//! which (a name over an address, both over a port) is the classifier's business.
//!
//! **When not to use it.** To ask whether a flow is of one given application out of many that share names (rules that an SMF provisions for several
//! application identifiers, TS 29.244 §7.4.3): a bundle tells one application. Build one of those rules alone, and ask both.

mod application;
mod builder;
mod bundle;
mod compiled;
mod findings;
mod hosts;
mod import;
mod matchers;
mod report;
mod rules;
mod toml_form;

pub use application::{Application, ApplicationId, Kind, Match, Rule, RuleId};
pub use builder::{
    Builder, Built, MAX_ADDRESSES, MAX_APPLICATIONS, MAX_DEPTH, MAX_FILES, MAX_LAYERS, MAX_RULES,
    MAX_SEARCHED,
};
pub use bundle::{Bundle, LoadError, MAX_FILE};
pub use compiled::CompiledError;
pub use findings::{Finding, Findings, Location, MAX_FINDINGS, Wrong};
pub use import::{Attributes, Imported, LeftOut, MAX_LEFT_OUT};
pub use report::{ApplicationRow, Explanation, Summary};
pub use rules::{MAX_PORTS, MAX_TEXT, SEARCHED};

#[cfg(test)]
mod tests;
