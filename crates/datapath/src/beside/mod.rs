//! What a worker does beside its bursts: control's orders, answers to the links and to far ends, regular work.

mod carried;
pub(crate) mod flow_life;
pub(crate) mod gtpu_control;
pub(crate) mod held;
pub(crate) mod icmp;
pub(crate) mod local;
pub(crate) mod orders;
pub(crate) mod pieces;
pub(crate) mod redirect;
