//! The data network: a web server, and `iperf3 -s` where there is one.

use crate::LabError;
use crate::process::{Process, is_there};
use crate::topology::{Namespaces, address};
use crate::web;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// The running servers, gone when dropped; the web server goes with the program.
#[derive(Debug)]
pub(crate) struct DataNetwork {
    iperf3: Option<Process>,
}

impl DataNetwork {
    /// Starts the servers; iperf3's output goes to a file in `directory`.
    pub fn start(namespace: &str, directory: &Path) -> Result<Self, LabError> {
        let at = |ip| SocketAddr::new(ip, 80);
        let addresses = [at(address::DN.into()), at(address::DN_V6.into())];
        let listeners = Namespaces::inside(namespace, || {
            addresses.into_iter().map(TcpListener::bind).collect::<Result<Vec<_>, _>>()
        })?
        .map_err(LabError::Os)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LabError::Os)?;
        let life = move || {
            if let Err(error) = runtime.block_on(web::serve(listeners)) {
                tracing::error!("the web server in the data network gave up: {error}");
            }
        };
        std::thread::Builder::new().name("web".into()).spawn(life).map_err(LabError::Os)?;
        let iperf3 = if is_there(Path::new("iperf3")) {
            Some(Process::start(namespace, &["iperf3", "--server"], &directory.join("iperf3.log"))?)
        } else {
            None
        };
        Ok(Self { iperf3 })
    }

    /// Whether iperf3 is installed.
    pub const fn has_iperf3(&self) -> bool {
        self.iperf3.is_some()
    }
}
