//! The UE and its gNB: an interface whose packets travel in GTP-U.

use crate::LabError;
use crate::topology::{Namespaces, run, ue_name};
use io::tun::Tun;
use loadgen::facts::SessionFacts;
use loadgen::gnb_tun::{LabGnb, Tunnel};
use packet::GTP_U_PORT;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What a UE is told by its network: with tunnel headers and some room, 1,400 fit into 1,500.
pub(crate) const MTU: u16 = 1_400;

/// The running UE and gNB. Dropped, the interface vanishes.
#[derive(Debug)]
pub(crate) struct Ue {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ue {
    /// Gives a UE's namespace an interface with the session's addresses, and default routes through it; its gNB is in `ran`.
    pub fn start(ran: &str, (number, namespace): (u8, &str), facts: &SessionFacts) -> Result<Self, LabError> {
        let interface = ue_name(number);
        let tunnel =
            Tunnel { upf: facts.upf_n3, ul_teid: facts.ul_teid, dl_teid: facts.dl_teid, qfi: facts.qfi };
        let at = SocketAddr::new(facts.gnb, GTP_U_PORT);
        let tun = Namespaces::inside(namespace, || Tun::open(&interface, true))??;
        let mut gnb = Namespaces::inside(ran, || LabGnb::new(tun, at, tunnel))??;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let life = move || {
            if let Err(error) = gnb.run(&stopping) {
                tracing::error!("the gNB model gave up: {error}");
            }
            tracing::debug!("gNB: {:?}", gnb.counts());
        };
        let thread =
            std::thread::Builder::new().name(format!("gnb{number}")).spawn(life).map_err(LabError::Os)?;
        let this = Self { stop, thread: Some(thread) };
        configure(namespace, &interface, facts)?;
        Ok(this)
    }
}

fn configure(namespace: &str, interface: &str, facts: &SessionFacts) -> Result<(), LabError> {
    let ip = |line: &str| run("ip", &format!("-n {namespace} {line}"));
    // A UE has no link-local address of the kernel's invention: its prefix and interface identifier are the session's.
    ip(&format!("link set {interface} mtu {MTU} addrgenmode none"))?;
    ip(&format!("link set {interface} up"))?;
    if let Some(v4) = facts.ue_ipv4 {
        ip(&format!("address add {v4}/32 dev {interface}"))?;
        ip(&format!("route add default dev {interface} src {v4}"))?;
    }
    if let Some(v6) = facts.ue_ipv6_address() {
        ip(&format!("address add {v6}/64 dev {interface} nodad"))?;
        ip(&format!("-6 route add default dev {interface} src {v6}"))?;
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
