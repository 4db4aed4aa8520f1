//! Messages as typed values: what each request and response says, in both directions.

mod rules;
mod session;

pub use rules::*;
pub use session::*;
