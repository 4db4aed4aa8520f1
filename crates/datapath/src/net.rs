//! The network around the UPF: interfaces, routes, next hops. The control side owns the master copy;
//! every worker has its own view, replaced by command, so that nothing on the packet path is shared.

/// A worker's immutable view of the network.
#[derive(Debug)]
pub struct NetView {}
