//! Packets that wait until an SMF says what becomes of them.

use crate::meta::Meta;
use crate::state::permit::Permit;

/// A packet and what is needed to judge it again later.
#[derive(Debug)]
pub struct Waiting<F> {
    pub meta: Meta,
    pub frame: F,
    /// Given back with it.
    pub _place: Permit,
}
