//! `millrace run`: the UPF that a configuration describes.

use super::config::{Overrides, confirm, load};
use crate::exit::{Exit, Failure};
use crate::log::{self, Verbosity};
use crate::output;
use control::config::Config;
use control::upf::{Options, Upf, UpfError};
use std::path::PathBuf;

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
    /// Poll without pause: least latency, a whole core per worker.
    #[arg(long)]
    busy_poll: bool,
}

/// Runs the command.
pub fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let config = load(&args.config, &args.overrides)?;
    log::start(verbosity, Some(&config.log.filter))?;
    if args.check {
        return confirm(&args.config, &config).and_then(|()| confirm_cores(&config));
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    serve(&config, args)
}

/// Says where workers would run on this machine, and what is wrong with that.
fn confirm_cores(config: &Config) -> Result<(), Failure> {
    let placed = control::upf::cores::place(config, engine::topology::SYSFS.as_ref());
    let placed = placed.map_err(|error| Failure::new(Exit::Usage, error))?;
    output::text(&placed.to_string())
}

#[cfg(not(feature = "dpdk"))]
fn serve(_: &Config, _: &Args) -> Result<(), Failure> {
    Err(Failure::new(
        Exit::Device,
        "this build has no DPDK (cargo feature `dpdk`), and so no ports to run on",
    ))
}

#[cfg(feature = "dpdk")]
fn serve(config: &Config, args: &Args) -> Result<(), Failure> {
    use dpdk::{DpdkPort, Eal};
    use engine::IdlePolicy;
    use std::sync::Arc;

    let stop = crate::signals::stop_flag()?;
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
    for address in control::kernel::shared_addresses(config, control::kernel::PROC_NET.as_ref()) {
        tracing::warn!(
            "the kernel has {address} too, and answers packets to it: each G-PDU with an ICMP error. `ip address show to \
             {address}` says where, `ip address del` takes it away"
        );
    }
    DpdkPort::connect(&mut ports);
    if config.offload.mode != control::config::OffloadMode::Off {
        ports.iter().for_each(log_flows);
    }
    let registrar = eal.clone();
    let options = Options {
        // A thread that can't be registered works all the same, without DPDK's per-thread buffer cache.
        on_thread_start: Some(Arc::new(move || Box::new(registrar.register_thread().ok()))),
        idle: if args.busy_poll { IdlePolicy::Busy } else { IdlePolicy::default() },
        ..Options::default()
    };
    let upf = Upf::start(config, ports, options).map_err(|error| failure(&error))?;
    let n4 = upf.n4_address();
    tracing::info!(node = %config.node_id, %n4, workers = config.workers.workers(), "serving; stop with SIGINT or SIGTERM");
    if let Some(path) = upf.ctl_path() {
        tracing::info!(socket = %path.display(), "ask with `millrace ctl`");
    }
    let reports = upf.run(&stop).map_err(|error| failure(&error))?;
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
        | UpfError::Net { .. }
        | UpfError::Cores(_)
        | UpfError::Pool(_)
        | UpfError::Engine(Pin { .. } | NoQueue { .. }) => Exit::Usage,
        _ => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}

/// Packets that each port's pool must have: those in its queues, what is buffered for UEs, what waits for any port to be sent, and some
/// in hand; and beside all these, the share that workers may hold back.
#[cfg(feature = "dpdk")]
fn frames(config: &Config, port: &control::config::Port) -> u32 {
    let descriptors =
        u32::from(port.queues) * (u32::from(port.rx_descriptors) + u32::from(port.tx_descriptors));
    let steered = config.qos.steering.extra_queues(port.queues) as u32 * u32::from(port.rx_descriptors);
    let waiting = config.qos.egress.frames().saturating_mul(config.ports.len() as u32);
    let workers = u32::from(config.workers.workers());
    let waiting = waiting.saturating_add(256).saturating_mul(workers);
    let needed = waiting.saturating_add(descriptors + steered + config.limits.buffered_packets + 4_096);
    needed.saturating_add(needed / (control::upf::HELD_SHARE as u32 - 1))
}

#[cfg(feature = "dpdk")]
fn device_spec(config: &Config, port: &control::config::Port) -> dpdk::DeviceSpec {
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
fn has_tags(config: &Config, port: &control::config::Port) -> bool {
    let of = |interface: &control::config::Interface| config.ports.get(interface.port).map(|port| &port.name);
    config.interfaces.iter().any(|interface| interface.vlan.is_some() && of(interface) == Some(&port.name))
}

#[cfg(feature = "dpdk")]
fn bond(bond: &control::config::Bond) -> dpdk::bond::Bond {
    use control::config::{BondMode, BondTimeout, BondTransmit};
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

#[cfg(feature = "dpdk")]
fn eal_config(config: &Config) -> dpdk::EalConfig {
    use control::config::Memory;

    let names = |port: &control::config::Port| match &port.bond {
        Some(bond) => bond.members.iter().map(ToString::to_string).collect(),
        None => vec![port.device.to_string()],
    };
    let devices: Vec<String> = config.ports.iter().flat_map(names).collect();
    // Headroom, private data and alignment come to less than 800 bytes a buffer.
    let bytes = |port: &control::config::Port| {
        // For LACP's own packets, each member of a port has about a kilobyte per transmit descriptor.
        let members = port.bond.as_ref().map_or(0, |bond| bond.members.len() as u64);
        let descriptors = u64::from(port.queues) * u64::from(port.tx_descriptors) + 256;
        u64::from(frames(config, port)) * (u64::from(port.mtu) + 800) + members * descriptors * 1024
    };
    let megabytes = config.ports.iter().map(bytes).sum::<u64>() * 5 / 4 / (1 << 20) + 64;
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
