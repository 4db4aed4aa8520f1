//! `millrace run`: the UPF that a configuration describes.

use super::config::{Overrides, confirm, load};
use crate::exit::{Exit, Failure};
use crate::log::{self, Levels, Verbosity};
use crate::output;
use config::Config;
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
    if let Some(room) = machine::memory::Room::here()
        && let Some((key, wrong)) = upf::needs::exceeds(&config, &room)
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
    let placed = upf::cores::place(config, machine::topology::SYSFS.as_ref());
    let placed = placed.map_err(|error| Failure::new(Exit::Usage, error))?;
    output::text(&placed.to_string())
}

/// Says who would look up sessions and flows, where that is to be a device.
fn confirm_lookups(config: &Config) -> Result<(), Failure> {
    if config.lookup == config::LookupBy::Cpu {
        return Ok(());
    }
    let foretold = upf::lookups::foretell(config.lookup, upf::lookups::gpu::list());
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
        lookups: Some(upf::lookups::gpu::finder(config)),
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
        frames: Some(upf::needs::frames(config, port)),
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

#[cfg(feature = "dpdk")]
fn eal_config(config: &Config) -> dpdk::EalConfig {
    use config::Memory;

    let names = |port: &config::Port| match &port.bond {
        Some(bond) => bond.members.iter().map(ToString::to_string).collect(),
        None => vec![port.device.to_string()],
    };
    let devices: Vec<String> = config.ports.iter().flat_map(names).collect();
    let megabytes = upf::needs::buffer_bytes(config) >> 20;
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

    #[test]
    fn a_lost_worker_has_an_exit_code_of_its_own() {
        assert_eq!(failure(&UpfError::WorkerLost(0)).exit, Exit::WorkerLost);
    }
}
