//! `millrace dpi -i PORT`: what passes a port, until somebody ends it.

use super::Args;
use crate::exit::{Exit, Failure};
#[cfg(feature = "dpdk")]
use crate::output;
use dpi::{Knowledge, Options};
use std::sync::Arc;
use survey::Lists;

#[cfg(not(feature = "dpdk"))]
pub fn run(_: &Args, _: &str, _: Options, _: Arc<Knowledge>, _: Lists) -> Result<(), Failure> {
    Err(Failure::new(
        Exit::Device,
        "this build has no DPDK (cargo feature `dpdk`), and so no ports: `tcpdump -w - | millrace dpi -` inspects an interface",
    ))
}

#[cfg(feature = "dpdk")]
pub use with_ports::run;

#[cfg(feature = "dpdk")]
mod with_ports {
    use super::{Arc, Args, Exit, Failure, Knowledge, Lists, Options, output};
    use config::DeviceName;
    use config::units::TextUnit;
    use dpdk::{DeviceSpec, DpdkPort, Eal, EalConfig, Interface};
    use io::{Port, PortStats};
    use std::hash::{BuildHasher, RandomState};
    use std::io::IsTerminal;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
    use survey::live::{Live, Look};
    use survey::reading::Stages;
    use survey::report::PortLine;
    use survey::{Report, Survey};

    /// Home, and everything behind it cleared.
    const CLEAR: &str = "\x1b[H\x1b[J";
    /// How long nobody looks where nothing has come: a queue of a thousand holds a tenth of a millisecond's frames of 100 Gbit/s, and one
    /// second's of what a tap sees.
    const NAP: Duration = Duration::from_micros(100);
    /// Frames that wait for being inspected.
    const DESCRIPTORS: u16 = 4096;
    /// What a port takes as its largest packet, if the kernel has no say in it.
    const MTU: u16 = 1500;
    /// The largest that a port of ours takes.
    const LARGEST: u16 = 9600;

    /// Inspects until Ctrl-C, or as long as was asked for.
    pub fn run(
        args: &Args,
        port: &str,
        options: Options,
        knowledge: Arc<Knowledge>,
        lists: Lists,
    ) -> Result<(), Failure> {
        let stop = crate::signals::stop_flag()?;
        let (mut opened, _eal) = open(port)?;
        let Some((queue, _)) = opened.take_queue(0) else {
            return Err(Failure::new(Exit::Device, format!("{port} has no queue")));
        };
        let stages = Stages::new(options, Arc::clone(&knowledge), RandomState::new().hash_one("flows"));
        let mut live = Live::new(queue, stages, Survey::new(knowledge, lists));
        let begun = Instant::now();
        // Flows' times are those of a clock that nobody sets.
        let base = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64);
        let redraws = !args.json && !args.csv && std::io::stdout().is_terminal();
        let interval = Duration::from_secs(args.interval);
        let end = args.seconds.map(Duration::from_secs);
        let mut next = interval;
        if !redraws && !args.json {
            eprintln!("inspecting what {port} receives; Ctrl-C ends it");
        }
        while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| begun.elapsed() < end) {
            let elapsed = begun.elapsed();
            if live.poll(base + elapsed.as_nanos() as u64) == 0 {
                std::thread::sleep(NAP);
            }
            if elapsed < next || !(redraws || args.json) {
                continue;
            }
            next = elapsed + interval;
            let look = live.look(elapsed.as_nanos() as u64);
            if !show(args, port, opened.stats(), look, redraws)? {
                return Ok(());
            }
        }
        let (elapsed, stats) = (begun.elapsed(), opened.stats());
        let look = live.finish(elapsed.as_nanos() as u64);
        if args.json {
            return show(args, port, stats, look, false).map(drop);
        }
        if redraws {
            output::text(CLEAR)?;
        }
        super::super::show(args, &Report { port: Some(line(port, stats)), ..look.report })
    }

    /// On a terminal in the same place; as JSON, a line. Whether anybody still reads it.
    fn show(args: &Args, port: &str, stats: PortStats, look: Look, redraws: bool) -> Result<bool, Failure> {
        let top = if look.is_last { usize::MAX } else { args.top };
        let report = Report { port: Some(line(port, stats)), ..look.report };
        if redraws {
            let rate = format!(
                "{:.0} packets/s, {:.2} Mbit/s, {} flows going on\n",
                look.packets_per_second,
                look.bits_per_second / 1e6,
                look.flows_going_on
            );
            // Five tables have to fit.
            let page = report.page(args.top.min(5));
            return output::more(&format!("{CLEAR}{rate}{page}"));
        }
        output::more(&output::line(&Look { report: report.cut(top), ..look })?)
    }

    fn line(port: &str, stats: PortStats) -> PortLine {
        PortLine {
            port: port.to_owned(),
            received: stats.rx_packets,
            missed: stats.rx_missed,
            errors: stats.rx_errors,
        }
    }

    /// Opens a kernel interface, or a device. EAL goes after the port.
    fn open(port: &str) -> Result<(DpdkPort, Eal), Failure> {
        let Observed { device, mtu, promiscuous } = device(port)?;
        let spec = DeviceSpec {
            rx_descriptors: DESCRIPTORS,
            mtu,
            promiscuous,
            sent_too: true,
            ..DeviceSpec::new(port, &device)
        };
        let failed = |error: dpdk::DpdkError| Failure::new(Exit::Device, error);
        // Frames in the ring's buffers and in hand, and what ordinary pages waste.
        let megabytes = u32::from(spec.rx_descriptors) * 3 * u32::from(mtu.max(2048) + 1024) / (1 << 20) + 32;
        let eal = Eal::init(&EalConfig { megabytes, ..EalConfig::for_devices([device.as_str()]) })
            .map_err(failed)?;
        let opened = DpdkPort::open(&eal, &spec).map_err(failed)?;
        for warning in opened.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok((opened, eal))
    }

    /// A device to be opened.
    struct Observed {
        /// As DPDK knows it.
        device: String,
        mtu: u16,
        /// Whether it has to be made so: an interface that somebody else has made promiscuous stays so afterwards.
        promiscuous: bool,
    }

    impl Observed {
        fn new(device: String, interface: Option<Interface>) -> Self {
            let (mtu, promiscuous) =
                interface.map_or((MTU, false), |it| (it.mtu.min(LARGEST), it.promiscuous));
            Self { device, mtu, promiscuous: !promiscuous }
        }
    }

    /// Which one is meant.
    fn device(port: &str) -> Result<Observed, Failure> {
        if let Some(device) = DeviceName::read(port) {
            let iface = match &device {
                DeviceName::Vdev { arguments, .. } => {
                    arguments.split(',').find_map(|it| it.strip_prefix("iface="))
                }
                DeviceName::Pci(_) => None,
            };
            return Ok(Observed::new(device.to_string(), iface.and_then(Interface::look)));
        }
        match Interface::look(port) {
            Some(interface) => Ok(Observed::new(format!("net_af_packet0,iface={port}"), Some(interface))),
            None => Err(Failure::new(
                Exit::Usage,
                format!(
                    "{port:?} is no interface of this machine (`ip link` lists them), nor a device: a PCI address \
                     (0000:01:00.0), or a DPDK virtual device (net_af_packet0,iface=eth0)"
                ),
            )),
        }
    }
}
