//! A whole UPF on in-memory ports, in this process: what the demo and the N4 benchmark run against.
//!
//! ```text
//!   gNBs 192.0.2.10..  --- n3 | Millrace | n6 --- router 203.0.113.254 --- servers
//!                              | N4 127.0.0.1
//! ```

use engine::WorkerReport;
use io::Port;
use io::mem::{MemConfig, MemError, MemNic, MemWire, RssMode};
use loadgen::facts::Network;
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use upf::{Backend, Options, Saved, Upf, UpfError};

/// The UPF's address on N3.
pub const UPF_N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The UPF's addresses on N6.
pub const UPF_N6: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1))];
/// The N3 port's MAC address.
pub const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
/// The N6 port's MAC address.
pub const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
/// The MTU of both ports: tunnel headers must fit around packets of 1,500 bytes.
pub const MTU: u16 = 9_000;
/// Receive descriptors of each queue.
pub const DESCRIPTORS: usize = 2_048;

/// An address with a port that the system chooses.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Why there is no rig.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The configuration made here is wrong: a defect.
    #[error("{0}")]
    Config(Box<config::Report>),
    /// An in-memory NIC could not be made.
    #[error("in-memory NIC: {0}")]
    Nic(#[from] MemError),
    /// The UPF did not start, or stopped with an error.
    #[error(transparent)]
    Upf(#[from] UpfError),
    /// The operating system refuses a thread.
    #[error("can't start a thread: {0}")]
    Os(#[from] std::io::Error),
    /// The control thread panicked.
    #[error("the UPF's control thread died")]
    Died,
}

/// The free ends of the cables.
#[derive(Debug)]
pub struct Wires {
    /// To the gNBs.
    pub n3: MemWire,
    /// To the data network.
    pub n6: MemWire,
}

/// A running UPF.
pub struct Rig {
    /// Where SMFs reach it.
    pub n4: SocketAddr,
    /// Asks the UPF what `ctl` would.
    pub backend: Backend,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<WorkerReport>, UpfError>>,
}

impl Rig {
    /// Starts a UPF with this many workers that keeps up to `sessions` sessions.
    pub fn start(workers: u16, sessions: u32) -> Result<(Self, Wires), RigError> {
        Self::restored(workers, sessions, NOWHERE, None)
    }

    /// Starts one that SMFs reach here, and that goes on with what another one wrote down.
    pub fn restored(
        workers: u16,
        sessions: u32,
        n4: SocketAddr,
        restore: Option<Saved>,
    ) -> Result<(Self, Wires), RigError> {
        let text = configuration(Some(workers), sessions, n4);
        let config = config::parse("built-in", &text, &[], &[]).map_err(RigError::Config)?;
        let nic = |name: &str, mac| {
            MemNic::new(MemConfig {
                name: name.into(),
                mac,
                mtu: MTU,
                queues: workers,
                descriptors: DESCRIPTORS,
                rss: RssMode::InnerIp,
                steering: config.qos.steering.clone(),
                ..MemConfig::default()
            })
        };
        let (n3_port, n3) = nic("n3", N3_MAC)?;
        let (n6_port, n6) = nic("n6", N6_MAC)?;
        let options = Options { no_ctl: true, restore, ..Options::default() };
        Ok((Self::run(&config, vec![n3_port, n6_port], options)?, Wires { n3, n6 }))
    }

    /// Starts a UPF with one worker on other ports, N3 and N6, of which `more` is configured beside the usual. It has a control socket.
    pub fn with_socket<P>(sessions: u32, more: &str, ports: [P; 2]) -> Result<Self, RigError>
    where
        P: Port + 'static,
        P::Rx: 'static,
        P::Tx: 'static,
        P::Pool: 'static,
    {
        let text = configuration(None, sessions, NOWHERE) + more;
        let config = config::parse("built-in", &text, &[], &[]).map_err(RigError::Config)?;
        Self::run(&config, ports.into(), Options::default())
    }

    fn run<P>(config: &config::Config, ports: Vec<P>, options: Options) -> Result<Self, RigError>
    where
        P: Port + 'static,
        P::Rx: 'static,
        P::Tx: 'static,
        P::Pool: 'static,
    {
        let options = Options { reply_to_source_port: true, ..options };
        let upf = Upf::start(config, ports, options)?;
        let (n4, backend) = (upf.n4_address(), upf.backend());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::Builder::new().name("control".into()).spawn(move || upf.run(&flag))?;
        Ok(Self { n4, backend, stop, thread })
    }

    /// Stops the UPF; its workers' final counters.
    pub fn stop(self) -> Result<Vec<WorkerReport>, RigError> {
        self.stop.store(true, Ordering::Relaxed);
        self.end()
    }

    /// Waits until it has stopped by itself.
    pub fn end(self) -> Result<Vec<WorkerReport>, RigError> {
        Ok(self.thread.join().map_err(|_| RigError::Died)??)
    }
}

/// gNBs, router and servers around the rig.
pub fn network(gnbs: u16) -> Network {
    let router = [
        IpAddr::V4(Ipv4Addr::new(203, 0, 113, 254)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 0xffff)),
    ];
    let servers = (Ipv4Addr::new(198, 51, 100, 1), Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1));
    Network::new(IpAddr::from([192, 0, 2, 10]), gnbs, &router, servers)
}

/// `workers`: `None` if whoever asks says more about them.
fn configuration(workers: Option<u16>, sessions: u32, n4: SocketAddr) -> String {
    let workers = workers.map_or_else(String::new, |count| format!("[workers]\ncount = {count}"));
    format!(
        r#"
        [node]
        id = "millrace.demo"
        [n4]
        listen = "{n4}"
        last-reports = "0s"
        [[port]]
        name = "access"
        driver = "null"
        mtu = {MTU}
        [[port]]
        name = "core"
        driver = "null"
        mtu = {MTU}
        [[interface]]
        name = "n3"
        port = "access"
        roles = ["n3"]
        addresses = ["192.0.2.1/24", "2001:db8:3::1/64"]
        [[interface]]
        name = "n6"
        port = "core"
        roles = ["n6"]
        addresses = ["203.0.113.1/24", "2001:db8:6::1/64"]
        [[route]]
        to = "0.0.0.0/0"
        via = "203.0.113.254"
        [[route]]
        to = "::/0"
        via = "2001:db8:6::ffff"
        [[pool]]
        ipv4 = ["10.64.0.0/10"]
        ipv6 = ["2001:db8:4000::/38"]
        [limits]
        sessions = {sessions}
        sessions-per-peer = {sessions}
        {workers}
        "#,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    fn the_built_in_configuration_is_right() {
        for (workers, sessions) in [(1, 1), (4, 10_000), (2, 2_000_000)] {
            let text = super::configuration(Some(workers), sessions, super::NOWHERE);
            config::parse("built-in", &text, &[], &[]).map_err(|report| report.to_string()).unwrap();
        }
    }
}
