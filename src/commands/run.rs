//! `millrace run`: the UPF that a configuration describes.

use super::config::{Overrides, confirm, load};
use crate::exit::{Exit, Failure};
use crate::log::{self, Levels, Verbosity};
use crate::output;
use config::Config;
#[cfg(feature = "dpdk")]
use config::Wrong;
use std::path::PathBuf;
#[cfg(feature = "dpdk")]
use upf::{Options, Saved, Upf, UpfError};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Args {
    /// The TOML file (`millrace config example` prints one).
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
    /// Check the configuration, say where workers would run, and end.
    #[arg(long)]
    check: bool,
    /// Go on with the sessions that `millrace ctl dump --stop FILE` wrote down. FILE is renamed then to FILE.restored; if it is not there, the
    /// UPF starts without sessions.
    #[arg(long, value_name = "FILE")]
    restore: Option<PathBuf>,
    /// Poll without pause: least latency, a whole core per worker.
    #[arg(long)]
    busy_poll: bool,
}

/// Runs the command.
pub fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let config = load(&args.config, &args.overrides)?;
    let levels = log::start_with_levels(verbosity, Some(&config.log.filter))?;
    #[cfg(feature = "dpdk")]
    if let Some(room) = crate::memory::Room::here()
        && let Some((key, wrong)) = exceeds(&config, &room)
    {
        return Err(super::config::object(&args.config, &args.overrides, key, wrong));
    }
    if args.check {
        return confirm(&args.config, &config)
            .and_then(|()| confirm_cores(&config))
            .and_then(|()| confirm_lookups(&config));
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    serve(&config, args, levels)
}

/// Takes over what can be changed while the UPF runs, or says why not.
#[cfg(feature = "dpdk")]
fn reload(file: &std::path::Path, overrides: &Overrides, backend: &upf::Backend, levels: &Levels) {
    let read = load(file, overrides).and_then(|config| {
        for warning in config.warnings() {
            tracing::warn!("{warning}");
        }
        let filter = config.log.filter.clone();
        let refused = |error: api::CtlError| Failure::new(Exit::Failed, error.to_string());
        Ok((backend.reload(config).map_err(refused)?, filter))
    });
    let (reloaded, filter) = match read {
        Ok(reloaded) => reloaded,
        Err(failure) => {
            crate::report::print(&failure);
            return tracing::error!("SIGHUP: nothing was changed; the UPF goes on as it was");
        }
    };
    match levels.configure(&filter) {
        Ok(None) => {}
        Ok(Some(fixed)) => tracing::info!("log.filter has no effect: {fixed} comes before it"),
        Err(error) => tracing::error!("log.filter: {error}"),
    }
    let upf::Reloaded { changed, restart, shut_out } = reloaded;
    let listed = |names: &[&str]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    tracing::info!(changed = listed(&changed), "SIGHUP: the configuration was read anew");
    if !restart.is_empty() {
        tracing::warn!("these differ, and take effect with the next start: {}", listed(&restart));
    }
    for smf in shut_out {
        tracing::warn!(smf, "is no longer among n4.peers: it is not heard, and its sessions stay");
    }
}

/// Says where workers would run on this machine, and what is wrong with that.
fn confirm_cores(config: &Config) -> Result<(), Failure> {
    let placed = upf::cores::place(config, engine::topology::SYSFS.as_ref());
    let placed = placed.map_err(|error| Failure::new(Exit::Usage, error))?;
    output::text(&placed.to_string())
}

/// Who looks for a CUDA device.
const LOOKUPS: Option<&upf::lookups::FindLookups> = None;

/// Says who would look up sessions and flows, where that is to be a device.
fn confirm_lookups(config: &Config) -> Result<(), Failure> {
    if config.lookup == config::LookupBy::Cpu {
        return Ok(());
    }
    let foretold = upf::lookups::foretell(config.lookup, LOOKUPS);
    let foretold =
        foretold.map_err(|error| Failure::new(Exit::Device, upf::UpfError::from(error).to_string()))?;
    output::text(&format!("lookup = \"{}\": {foretold}\n", config.lookup.label()))
}

#[cfg(not(feature = "dpdk"))]
fn serve(_: &Config, _: &Args, _: Levels) -> Result<(), Failure> {
    Err(Failure::new(
        Exit::Device,
        "this build has no DPDK (cargo feature `dpdk`), and so no ports to run on",
    ))
}

#[cfg(feature = "dpdk")]
fn serve(config: &Config, args: &Args, levels: Levels) -> Result<(), Failure> {
    use dpdk::{DpdkPort, Eal};
    use engine::IdlePolicy;
    use std::sync::Arc;

    // Before a device is touched: a file that can't be read is better told at once.
    let restore = args.restore.as_deref().map(saved).transpose()?.flatten();
    let signals = crate::signals::Watch::start()?;
    let device = |error: dpdk::DpdkError| Failure::new(Exit::Device, error);
    let eal = Eal::init(&eal_config(config)).map_err(device)?;
    tracing::info!(memory = %eal.chosen(), "DPDK started");
    let mut ports = Vec::with_capacity(config.ports.len());
    for port in &config.ports {
        let opened = DpdkPort::open(&eal, &device_spec(config, port)).map_err(device)?;
        let info = io::Port::info(&opened);
        tracing::info!(port = info.name, driver = info.driver, mac = %info.mac, mtu = info.mtu, "port started");
        for remark in io::Port::remarks(&opened) {
            tracing::info!(port = info.name, remark);
        }
        for warning in opened.warnings() {
            tracing::warn!(port = info.name, warning);
        }
        ports.push(opened);
    }
    for address in upf::kernel::shared_addresses(config, upf::kernel::PROC_NET.as_ref()) {
        tracing::warn!(
            "the kernel has {address} too, and answers packets to it: each G-PDU with an ICMP error. `ip address show to \
             {address}` says where, `ip address del` takes it away"
        );
    }
    DpdkPort::connect(&mut ports);
    if config.offload.mode != config::OffloadMode::Off {
        ports.iter().for_each(log_flows);
    }
    let registrar = eal.clone();
    let options = Options {
        // A thread that can't be registered works all the same, without DPDK's per-thread buffer cache.
        on_thread_start: Some(Arc::new(move || Box::new(registrar.register_thread().ok()))),
        idle: if args.busy_poll { IdlePolicy::Busy } else { IdlePolicy::default() },
        restore,
        lookups: LOOKUPS.cloned(),
        ..Options::default()
    };
    let upf = Upf::start(config, ports, options).map_err(|error| failure(&error))?;
    let n4 = upf.n4_address();
    tracing::info!(node = %config.node_id, %n4, workers = config.workers.workers(), "serving; stop with SIGINT or SIGTERM");
    if let Some(path) = upf.ctl_path() {
        tracing::info!(socket = %path.display(), "ask with `millrace ctl`");
    }
    let (file, overrides, backend) = (args.config.clone(), args.overrides.clone(), upf.backend());
    signals.serves(upf.ctl_path(), move || reload(&file, &overrides, &backend, &levels));
    let reports = upf.run(signals.stop()).map_err(|error| failure(&error))?;
    for report in reports {
        let (counters, worker) = (report.counters, report.worker);
        tracing::info!(
            worker,
            received = counters.received,
            sent = counters.sent,
            dropped = counters.dropped_total(),
            "stopped"
        );
    }
    Ok(())
}

/// What the UPF goes on with.
#[cfg(feature = "dpdk")]
fn saved(path: &std::path::Path) -> Result<Option<Saved>, Failure> {
    let saved = Saved::open(path).map_err(|error| Failure::new(Exit::Usage, error))?;
    match &saved {
        Some(saved) => {
            tracing::info!(file = %path.display(), sessions = saved.sessions(), bytes = saved.bytes(), "to be restored");
        }
        None => {
            tracing::warn!(file = %path.display(), "there is nothing to restore: the UPF starts without sessions")
        }
    }
    Ok(saved)
}

/// Says what a port's NIC may do by itself.
#[cfg(feature = "dpdk")]
fn log_flows(port: &dpdk::DpdkPort) {
    let name = &io::Port::info(port).name;
    for (rule, _, answer) in port.flows().probe() {
        match answer {
            Ok(()) => tracing::info!(port = name, rule, "the NIC takes such rules"),
            Err(refused) => tracing::info!(port = name, rule, %refused, "the NIC takes no such rules"),
        }
    }
}

#[cfg(feature = "dpdk")]
fn failure(error: &UpfError) -> Failure {
    use engine::EngineError::{NoQueue, Pin};

    let exit = match error {
        UpfError::Listen { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Exit::Privilege
        }
        UpfError::Listen { .. }
        | UpfError::NoAddress
        | UpfError::Network { .. }
        | UpfError::Cores(_)
        | UpfError::Pool(_)
        | UpfError::Restore(_)
        | UpfError::OtherNode { .. }
        | UpfError::Engine(Pin { .. } | NoQueue { .. }) => Exit::Usage,
        UpfError::WorkerLost(_) => Exit::WorkerLost,
        UpfError::Lookups(_) => Exit::Device,
        _ => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}

/// Packets that each port's pool must have: those in its queues, what is buffered for UEs, what waits for any port to be sent or for a device to
/// look it up, and some in hand; and beside all these, the share that workers may hold back.
#[cfg(feature = "dpdk")]
fn frames(config: &Config, port: &config::Port) -> u32 {
    let descriptors =
        u32::from(port.queues) * (u32::from(port.rx_descriptors) + u32::from(port.tx_descriptors));
    let steered = config.qos.steering.extra_queues(port.queues) as u32 * u32::from(port.rx_descriptors);
    let waiting = config.qos.egress.frames().saturating_mul(config.ports.len() as u32);
    let workers = u32::from(config.workers.workers());
    let under_way = match config.lookup {
        config::LookupBy::Cpu => 0,
        config::LookupBy::Cuda | config::LookupBy::Auto => (engine::MOST_UNDER_WAY * io::BURST) as u32,
    };
    let waiting = waiting.saturating_add(256 + under_way).saturating_mul(workers);
    let needed = waiting.saturating_add(descriptors + steered + config.limits.buffered_packets + 4_096);
    needed.saturating_add(needed / (upf::HELD_SHARE as u32 - 1))
}

#[cfg(feature = "dpdk")]
fn device_spec(config: &Config, port: &config::Port) -> dpdk::DeviceSpec {
    dpdk::DeviceSpec {
        bond: port.bond.as_ref().map(bond),
        queues: port.queues,
        steering: config.qos.steering.clone(),
        tagged: has_tags(config, port),
        rx_descriptors: port.rx_descriptors,
        tx_descriptors: port.tx_descriptors,
        mtu: port.mtu,
        frames: Some(frames(config, port)),
        ..dpdk::DeviceSpec::new(&port.name, &port.device.to_string())
    }
}

/// Whether any interface of a port is a VLAN.
#[cfg(feature = "dpdk")]
fn has_tags(config: &Config, port: &config::Port) -> bool {
    let of = |interface: &config::Interface| config.ports.get(interface.port).map(|port| &port.name);
    config.interfaces.iter().any(|interface| interface.vlan.is_some() && of(interface) == Some(&port.name))
}

#[cfg(feature = "dpdk")]
fn bond(bond: &config::Bond) -> dpdk::bond::Bond {
    use config::{BondMode, BondTimeout, BondTransmit};
    use dpdk::bond::{Mode, Timeout, Transmit};

    dpdk::bond::Bond {
        mode: match bond.mode {
            BondMode::ActiveBackup => Mode::ActiveBackup,
            BondMode::Balance => Mode::Balance,
            BondMode::RoundRobin => Mode::RoundRobin,
            BondMode::Lacp => Mode::Lacp,
        },
        members: bond.members.iter().map(ToString::to_string).collect(),
        transmit: match bond.transmit {
            BondTransmit::L2 => Transmit::L2,
            BondTransmit::L23 => Transmit::L23,
            BondTransmit::L34 => Transmit::L34,
        },
        primary: bond.primary,
        timeout: match bond.timeout {
            BondTimeout::Short => Timeout::Short,
            BondTimeout::Long => Timeout::Long,
        },
    }
}

/// Bytes of packet buffers, and of what drivers have beside them, if so many packets are buffered for UEs.
#[cfg(feature = "dpdk")]
fn buffer_bytes(config: &Config, buffered: u32) -> u64 {
    let mut config = config.clone();
    config.limits.buffered_packets = buffered;
    // Headroom, private data and alignment come to less than 800 bytes a buffer.
    let bytes = |port: &config::Port| {
        // For LACP's own packets, each member of a port has about a kilobyte per transmit descriptor.
        let members = port.bond.as_ref().map_or(0, |bond| bond.members.len() as u64);
        let descriptors = u64::from(port.queues) * u64::from(port.tx_descriptors) + 256;
        u64::from(frames(&config, port)) * (u64::from(port.mtu) + 800) + members * descriptors * 1024
    };
    config.ports.iter().map(bytes).sum::<u64>() * 5 / 4 + (64 << 20)
}

/// What of the memory that is taken at the start there is no room for, if anything: the key to change, and what to say.
#[cfg(feature = "dpdk")]
fn exceeds(config: &Config, room: &crate::memory::Room) -> Option<(&'static [&'static str], Wrong)> {
    use config::Memory;

    let flow = u64::from(upf::BYTES_PER_FLOW);
    let wrong = |what, bytes: u64, available: u64, remedy| Wrong::Memory {
        what,
        megabytes: bytes >> 20,
        available: available >> 20,
        says: room.says.clone(),
        remedy,
    };
    let buffers = buffer_bytes(config, config.limits.buffered_packets);
    let are_huge = match config.memory {
        // DPDK says it if there are too few.
        Memory::HugePages => true,
        Memory::Auto => buffers <= room.huge,
        Memory::NoHuge => false,
    };
    let buffers = if are_huge { 0 } else { buffers };
    if buffers > room.ordinary {
        let without = buffer_bytes(config, 0);
        // Rounded up: what is said to fit does.
        let each = (buffers - without) / u64::from(config.limits.buffered_packets.max(1)) + 2;
        let fit = room.ordinary.saturating_sub(without) / each;
        let (key, remedy): (&[&str], _) = if fit > 0 {
            let remedy = format!("lower `limits.buffered-packets` to {fit} or less, or give it more memory");
            (&["limits", "buffered-packets"], remedy)
        } else {
            let remedy = "fewer or shorter queues (`queues`, `rx-descriptors`, `tx-descriptors`, [qos]), a smaller `mtu`, fewer \
                          workers, or more memory";
            (&["port"], remedy.into())
        };
        return Some((key, wrong("packet buffers", buffers, room.ordinary, remedy)));
    }
    let (flows, left) = (u64::from(config.limits.flows_reserved) * flow, room.ordinary - buffers);
    if flows > left {
        let remedy = format!(
            "lower `limits.flows-reserved` to {} or less: others are taken as flows come",
            left / flow
        );
        return Some((&["limits", "flows-reserved"], wrong("flow entries", flows, left, remedy)));
    }
    None
}

#[cfg(feature = "dpdk")]
fn eal_config(config: &Config) -> dpdk::EalConfig {
    use config::Memory;

    let names = |port: &config::Port| match &port.bond {
        Some(bond) => bond.members.iter().map(ToString::to_string).collect(),
        None => vec![port.device.to_string()],
    };
    let devices: Vec<String> = config.ports.iter().flat_map(names).collect();
    let megabytes = buffer_bytes(config, config.limits.buffered_packets) >> 20;
    dpdk::EalConfig {
        memory: match config.memory {
            Memory::Auto => dpdk::Memory::Auto,
            Memory::HugePages => dpdk::Memory::HugePages,
            Memory::NoHuge => dpdk::Memory::NoHuge,
        },
        megabytes: megabytes.try_into().unwrap_or(u32::MAX),
        ..dpdk::EalConfig::for_devices(devices.iter().map(String::as_str))
    }
}

#[cfg(all(test, feature = "dpdk"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::Room;

    #[test]
    fn memory_that_is_not_there_is_refused_with_what_would_fit() {
        let config = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            config::parse("example", config::EXAMPLE, &[], &set).unwrap()
        };
        let room = Room { ordinary: 4 << 30, says: "the test".into(), huge: 0 };
        assert!(exceeds(&config(&[]), &room).is_none());
        let much = ["limits.buffered-packets=16000000", "limits.buffered-packets-per-session=64"];
        let (key, wrong) = exceeds(&config(&much), &room).unwrap();
        assert_eq!(key, ["limits", "buffered-packets"]);
        assert!(wrong.to_string().contains("MB, and there are 4096 MB (the test)"), "{wrong}");
        // What it says does fit, and a little more doesn't.
        let help = wrong.help().unwrap();
        let fit: u32 = help.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let fits = |packets: u32| {
            exceeds(&config(&[&format!("limits.buffered-packets={packets}")]), &room).is_none()
        };
        assert!(fits(fit) && !fits(fit + fit / 50), "{help}");
        // Huge pages hold them, or are asked for and DPDK says it.
        assert!(exceeds(&config(&much), &Room { huge: 1 << 40, ..room.clone() }).is_none());
        let small = Room { ordinary: 1 << 20, ..room.clone() };
        assert_eq!(exceeds(&config(&[]), &small).unwrap().0, ["port"]);
        let (key, wrong) =
            exceeds(&config(&["limits.flows-reserved=134217728", "limits.flows=134217728"]), &room).unwrap();
        assert_eq!(key, ["limits", "flows-reserved"], "{wrong}");
    }

    #[test]
    fn a_lost_worker_has_an_exit_code_of_its_own() {
        assert_eq!(failure(&UpfError::WorkerLost(0)).exit, Exit::WorkerLost);
    }
}
