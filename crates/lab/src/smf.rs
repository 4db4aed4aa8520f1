//! The SMF model on a thread of its own, next to the UPF.

use crate::LabError;
use crate::lab::Options;
use crate::topology::{Namespaces, address};
use loadgen::facts::{SessionFacts, SessionMix, UePools};
use loadgen::habits::Shape;
use loadgen::smf::{BatchReport, Smf, SmfConfig, SmfError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// PFCP's port (TS 29.244 §4.2.2).
pub(crate) const PFCP: u16 = 8805;
/// It looks so often whether it should end.
const ROUND: Duration = Duration::from_millis(100);

/// The running SMF. Dropped, it deletes its session and releases the association.
#[derive(Debug)]
pub(crate) struct SmfThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SmfThread {
    /// Associates with the UPF and establishes a session for each UE, as IPv4v6 as the habit can. `check` is asked meanwhile whether
    /// that still makes sense.
    pub fn start(
        namespace: &str,
        config: SmfConfig,
        ues: u8,
        mut check: impl FnMut() -> Result<(), LabError>,
    ) -> Result<(Self, Vec<SessionFacts>), LabError> {
        let (tell, told) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let (namespace, stopping) = (namespace.to_owned(), Arc::clone(&stop));
        let life = move || serve(&namespace, config, ues, &stopping, &tell);
        let thread = std::thread::Builder::new().name("smf".into()).spawn(life).map_err(LabError::Os)?;
        let this = Self { stop, thread: Some(thread) };
        loop {
            match told.recv_timeout(ROUND) {
                Ok(result) => return result.map(|facts| (this, facts)),
                Err(RecvTimeoutError::Timeout) => check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LabError::Os(std::io::Error::other("the SMF model ended without a word")));
                }
            }
        }
    }
}

impl Drop for SmfThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The SMF of a lab with so many UEs.
pub(crate) fn config(options: &Options, ues: u8) -> Result<SmfConfig, LabError> {
    let gnbs = (0..ues).map(|ue| address::gnb(ue).into()).collect();
    let config = config_of(address::SMF_N4, gnbs)?;
    let shape = Shape { applications: options.applications.clone(), ..config.shape.clone() };
    Ok(SmfConfig { habit: options.smf, shape, ..config })
}

/// Where UE addresses come from.
pub(crate) fn pools() -> Result<UePools, LabError> {
    let prefix = |_| LabError::Os(std::io::Error::other("the UE pools of the topology are no prefixes"));
    let (ipv4, ipv6) = (address::UE_POOL.parse(), address::UE_POOL_V6.parse());
    Ok(UePools { ipv4: ipv4.map_err(prefix)?, ipv6: ipv6.map_err(prefix)? })
}

/// A plain SMF at this address, whose UEs are at these gNBs.
pub(crate) fn config_of(local: Ipv4Addr, gnbs: Vec<IpAddr>) -> Result<SmfConfig, LabError> {
    let at = |ip: Ipv4Addr| SocketAddr::new(ip.into(), PFCP);
    Ok(SmfConfig {
        // The UPF gives the UE its addresses wherever the habit leaves it to it.
        shape: Shape { choose_ue_ip: true, ..Shape::default() },
        mix: SessionMix { ipv4: 0, ipv6: 0, ipv4v6: 1 },
        pools: pools()?,
        gnbs,
        upf_n3: address::UPF_N3.into(),
        t1: Duration::from_millis(300),
        n1: 5,
        reactivate: true,
        ..SmfConfig::new(at(local), at(address::UPF_N4))
    })
}

/// The thread's life.
fn serve(
    namespace: &str,
    config: SmfConfig,
    ues: u8,
    stop: &AtomicBool,
    tell: &SyncSender<Result<Vec<SessionFacts>, LabError>>,
) {
    let mut smf = match establish(namespace, config, ues) {
        Ok((smf, facts)) => {
            if tell.send(Ok(facts)).is_err() {
                return;
            }
            smf
        }
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    while !stop.load(Ordering::Relaxed) {
        if let Err(error) = smf.serve(ROUND) {
            tracing::warn!("the SMF model gave up: {error}");
            return;
        }
    }
    if let Err(error) = smf.delete_all().and_then(|_| smf.release()) {
        tracing::debug!("the SMF model's farewell: {error}");
    }
}

/// An SMF in this namespace with a session for each UE.
pub(crate) fn establish(
    namespace: &str,
    config: SmfConfig,
    ues: u8,
) -> Result<(Smf, Vec<SessionFacts>), LabError> {
    let mut smf = Namespaces::inside(namespace, || Smf::bind(config))??;
    smf.associate()?;
    clean(&smf.establish(ues.into())?)?;
    clean(&smf.activate_all()?)?;
    let facts: Option<Vec<_>> = (0..u32::from(ues)).map(|ue| smf.session(ue).cloned()).collect();
    let facts = facts.ok_or(LabError::Session("it vanished".into()))?;
    Ok((smf, facts))
}

fn clean(report: &BatchReport) -> Result<(), LabError> {
    if report.is_clean() {
        return Ok(());
    }
    let why = report.refusals.first().map_or("no answer", |(_, reason)| reason.as_str());
    Err(LabError::Session(format!("{:?}: {why}", report.operation)))
}

impl From<SmfError> for LabError {
    fn from(error: SmfError) -> Self {
        Self::Session(error.to_string())
    }
}
