//! The UE and its gNB: an interface whose packets travel in GTP-U.

use crate::LabError;
use crate::topology::{Namespaces, address, run};
use io::tun::Tun;
use loadgen::facts::SessionFacts;
use loadgen::gnb_tun::{LabGnb, Tunnel};
use packet::GTP_U_PORT;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The UE's interface.
pub(crate) const INTERFACE: &str = "ue0";
/// What a UE is told by its network: with tunnel headers and some room, 1,400 fit into 1,500.
pub(crate) const MTU: u16 = 1_400;

/// The running UE and gNB. Dropped, the interface vanishes.
#[derive(Debug)]
pub(crate) struct Ue {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ue {
    /// Gives `namespace` an interface with the session's addresses, and default routes through it.
    pub fn start(namespace: &str, facts: &SessionFacts) -> Result<Self, LabError> {
        let tunnel =
            Tunnel { upf: facts.upf_n3, ul_teid: facts.ul_teid, dl_teid: facts.dl_teid, qfi: facts.qfi };
        let at = SocketAddr::new(address::GNB.into(), GTP_U_PORT);
        let mut gnb = Namespaces::inside(namespace, || -> Result<_, LabError> {
            Ok(LabGnb::new(Tun::open(INTERFACE, true)?, at, tunnel)?)
        })??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let life = move || {
            if let Err(error) = gnb.run(&stopping) {
                tracing::error!("the gNB model gave up: {error}");
            }
            tracing::debug!("gNB: {:?}", gnb.counts());
        };
        let thread = std::thread::Builder::new().name("gnb".into()).spawn(life).map_err(LabError::Os)?;
        let this = Self { stop, thread: Some(thread) };
        configure(namespace, facts)?;
        Ok(this)
    }
}

fn configure(namespace: &str, facts: &SessionFacts) -> Result<(), LabError> {
    let ip = |line: &str| run("ip", &format!("-n {namespace} {line}"));
    // A UE has no link-local address of the kernel's invention: its prefix and interface identifier are the session's.
    ip(&format!("link set {INTERFACE} mtu {MTU} addrgenmode none"))?;
    ip(&format!("link set {INTERFACE} up"))?;
    if let Some(v4) = facts.ue_ipv4 {
        ip(&format!("address add {v4}/32 dev {INTERFACE}"))?;
        ip(&format!("route add default dev {INTERFACE} src {v4}"))?;
    }
    if let Some(v6) = facts.ue_ipv6_address() {
        ip(&format!("address add {v6}/64 dev {INTERFACE} nodad"))?;
        ip(&format!("-6 route add default dev {INTERFACE} src {v6}"))?;
    }
    Ok(())
}

impl Drop for Ue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
