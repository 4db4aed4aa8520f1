//! `millrace ctl`: ask a running UPF, and show the answer as a table or as JSON.

use crate::commands::mirror;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Side, Table};
use clap::Subcommand;
use control::config::default_socket;
use control::ctl::*;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `ctl`.
#[derive(clap::Args)]
pub struct Args {
    /// The UPF's control socket. Default: $MILLRACE_CTL__SOCKET, else /run/millrace/ctl.sock for root and
    /// $XDG_RUNTIME_DIR/millrace/ctl.sock for others.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Which program runs, and for how long.
    Version,
    /// List sessions in order of SEID.
    Sessions {
        /// Pass over so many.
        #[arg(long, default_value_t = 0)]
        offset: u64,
        /// Show at most so many (up to 10000).
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
        limit: u32,
        /// Only those of the UE with this address.
        #[arg(long, value_name = "ADDRESS")]
        ue: Option<IpAddr>,
        /// Only those of the SMF with this Node ID.
        #[arg(long, value_name = "NODE-ID")]
        peer: Option<String>,
        /// Only those with this Network Instance.
        #[arg(long, value_name = "NAME")]
        network_instance: Option<String>,
    },
    /// Show all about a session.
    Session {
        /// Its UP SEID, as `sessions` prints it.
        seid: SeidText,
    },
    /// Show ports and their counters.
    Ports,
    /// Show dropped packets by reason.
    Drops,
    /// Show workers and their load.
    Workers,
    /// Show SMFs.
    Peers,
    /// Show what N4 counts, and its associations.
    N4,
    /// Show what became of flows, known, learned, evicted, and of the flow log; or set other watermarks.
    Flows {
        /// Tell of flows that have carried so many bytes. A watermark that isn't named is taken back.
        #[arg(long, value_name = "BYTES")]
        watermark_bytes: Option<u64>,
        /// Tell of flows that have carried so many packets.
        #[arg(long, value_name = "PACKETS")]
        watermark_packets: Option<u32>,
        /// Take both watermarks back.
        #[arg(long, conflicts_with_all = ["watermark_bytes", "watermark_packets"])]
        no_watermarks: bool,
    },
    /// Show what each slice's packets came to.
    Slices,
    /// Show what waits to be sent, sent and dropped by class at busy ports, and receive queues ahead of RSS.
    Qos,
    /// Show how many workers own shards and how moves of shards went; or have another number of workers own them, without
    /// losing a packet.
    Scale {
        /// So many workers, until `--release`.
        #[arg(value_parser = clap::value_parser!(u16).range(1..))]
        workers: Option<u16>,
        /// The number follows the load again, if `scaling.automatic` says so; else it stays.
        #[arg(long, conflicts_with = "workers")]
        release: bool,
    },
    /// Copy packets of chosen sessions to a port, a tunnel or a file.
    #[command(subcommand)]
    Mirror(mirror::Command),
    /// Show the translation on N6: pools, blocks of ports, mappings.
    Nat,
    /// Show flows that NICs forward by themselves.
    Offload,
    /// Stop the UPF.
    Stop,
}

impl Command {
    fn request(&self) -> Request {
        match self {
            Self::Version => Request::Version,
            Self::Sessions { offset, limit, ue, peer, network_instance } => Request::Sessions(SessionQuery {
                offset: *offset,
                limit: *limit,
                ue: *ue,
                peer: peer.clone(),
                network_instance: network_instance.clone(),
            }),
            Self::Session { seid } => Request::Session { seid: *seid },
            Self::Ports => Request::Ports,
            Self::Drops => Request::Drops,
            Self::Workers => Request::Workers,
            Self::Peers => Request::Peers,
            Self::N4 => Request::N4,
            Self::Flows { watermark_bytes: None, watermark_packets: None, no_watermarks: false } => {
                Request::Flows
            }
            Self::Flows { watermark_bytes, watermark_packets, .. } => {
                Request::FlowMarks(FlowMarksRequest { bytes: *watermark_bytes, packets: *watermark_packets })
            }
            Self::Slices => Request::Slices,
            Self::Qos => Request::Qos,
            Self::Scale { workers, release } => {
                Request::Scale(ScaleRequest { workers: *workers, release: *release })
            }
            Self::Mirror(command) => Request::Mirror(command.request()),
            Self::Nat => Request::Nat,
            Self::Offload => Request::Offload,
            Self::Stop => Request::Stop,
        }
    }
}

/// How long an answer is awaited.
const PATIENCE: Duration = Duration::from_secs(10);

impl From<CtlClientError> for Failure {
    fn from(error: CtlClientError) -> Self {
        let exit = match error {
            CtlClientError::Permission { .. } => Exit::Privilege,
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let from_environment = || std::env::var_os("MILLRACE_CTL__SOCKET").map(PathBuf::from);
    let socket = args.socket.clone().or_else(from_environment).unwrap_or_else(default_socket);
    let answer = CtlClient::connect(&socket, PATIENCE)?.ask(&args.command.request())?;
    if args.json { output::json(&answer) } else { output::text(&shown(&answer)) }
}

/// The answer for people.
fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Version(version) => format!(
            "millrace {}, node {}, process {}, up {}, {} sessions\n",
            version.version,
            printable(&version.node_id),
            version.pid,
            ago(version.uptime_seconds),
            version.sessions
        ),
        Answer::Sessions(page) => sessions(page),
        Answer::Session(detail) => session(detail),
        Answer::Ports { ports } => self::ports(ports),
        Answer::Drops { drops } if drops.is_empty() => "Nothing was dropped.\n".into(),
        Answer::Drops { drops } => self::drops(drops),
        Answer::Workers { workers } => self::workers(workers),
        Answer::Peers { peers } if peers.is_empty() => "No SMF is associated.\n".into(),
        Answer::Peers { peers } => self::peers(peers),
        Answer::N4(status) => n4(status),
        Answer::Flows { flows: lines } => flows(lines),
        Answer::Slices { slices: lines } => slices(lines),
        Answer::Qos(report) => qos(report),
        Answer::Scale(status) => scale(status),
        Answer::Mirrors { mirrors } => mirror::shown(mirrors),
        Answer::Nat(status) => nat(status),
        Answer::Offload(status) if status.ports.is_empty() => {
            "Nothing is to be offloaded (offload.mode).\n".into()
        }
        Answer::Offload(status) => offload(status),
        Answer::Stopping => "It stops.\n".into(),
        Answer::Error(error) => format!("{error}\n"),
    }
}

/// A peer's text without what could steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// What is not there.
fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".into(), ToString::to_string)
}

fn joined<T: ToString>(values: &[T]) -> String {
    if values.is_empty() {
        return "-".into();
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A span of time in its two greatest units.
fn ago(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m {}s", seconds % 60),
        3600..86_400 => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// A bit rate with its unit.
fn rate(bits: Option<u64>) -> String {
    match bits {
        None => "-".into(),
        Some(bits @ 1_000_000_000..) => format!("{:.2} Gbit/s", bits as f64 / 1e9),
        Some(bits @ 1_000_000..) => format!("{:.2} Mbit/s", bits as f64 / 1e6),
        Some(bits) => format!("{:.2} kbit/s", bits as f64 / 1e3),
    }
}

use Side::{Left, Right};

fn sessions(page: &SessionPage) -> String {
    if page.sessions.is_empty() {
        return format!("No session to show; {} match.\n", page.total);
    }
    let mut table = Table::new(&[
        ("SEID", Left),
        ("UE IPV4", Left),
        ("UE IPV6", Left),
        ("NETWORK", Left),
        ("SMF", Left),
        ("CP SEID", Left),
        ("SHARD", Right),
        ("PDR", Right),
        ("FAR", Right),
        ("QER", Right),
        ("URR", Right),
    ]);
    for line in &page.sessions {
        table.row([
            line.seid.to_string(),
            or_dash(line.ue_ipv4.as_ref()),
            or_dash(line.ue_ipv6.as_ref()),
            line.network_instance.clone(),
            line.peer.clone(),
            line.cp_seid.to_string(),
            line.shard.to_string(),
            line.rules.pdrs.to_string(),
            line.rules.fars.to_string(),
            line.rules.qers.to_string(),
            line.rules.urrs.to_string(),
        ]);
    }
    let last = page.offset + page.sessions.len() as u64;
    let more = if last < page.total { format!("; --offset {last} goes on") } else { String::new() };
    format!("{table}{} to {last} of {}{more}\n", page.offset + 1, page.total)
}

fn session(detail: &SessionDetail) -> String {
    let line = &detail.session;
    let mut text = format!(
        "Session {}  (SMF {}, its SEID {}, shard {})\nUE {} {}  network instance {:?}  {} packets buffered\n",
        line.seid,
        printable(&line.peer),
        line.cp_seid,
        line.shard,
        or_dash(line.ue_ipv4.as_ref()),
        printable(&or_dash(line.ue_ipv6.as_ref())),
        line.network_instance,
        detail.buffered
    );
    let mut part = |table: Table, empty: bool| {
        if !empty {
            // Writing to a string doesn't fail.
            let _ = write!(text, "\n{table}");
        }
    };
    let mut table = Table::new(&[
        ("PDR", Right),
        ("PRECEDENCE", Right),
        ("SOURCE", Left),
        ("TEID", Left),
        ("FAR", Right),
        ("QERS", Left),
        ("URRS", Left),
        ("PACKETS", Right),
        ("BYTES", Right),
        ("FILTERS", Left),
    ]);
    for pdr in &detail.pdrs {
        table.row([
            pdr.id.to_string(),
            pdr.precedence.to_string(),
            pdr.source.clone(),
            or_dash(pdr.teid.as_ref()),
            pdr.far.to_string(),
            joined(&pdr.qers),
            joined(&pdr.urrs),
            pdr.packets.to_string(),
            pdr.bytes.to_string(),
            if pdr.filters.is_empty() { "any".into() } else { pdr.filters.join("; ") },
        ]);
    }
    part(table, detail.pdrs.is_empty());
    let mut table = Table::new(&[("FAR", Right), ("ACTION", Left), ("TOWARDS", Left), ("TUNNEL", Left)]);
    for far in &detail.fars {
        let tunnel = far.tunnel.map(|tunnel| format!("{} at {}", tunnel.teid, tunnel.peer));
        table.row([
            far.id.to_string(),
            far.action.clone(),
            or_dash(far.destination.as_ref()),
            or_dash(tunnel.as_ref()),
        ]);
    }
    part(table, detail.fars.is_empty());
    let mut table = Table::new(&[
        ("QER", Right),
        ("QFI", Right),
        ("UL GATE", Left),
        ("DL GATE", Left),
        ("UL MBR", Right),
        ("DL MBR", Right),
    ]);
    let gate = |open| if open { "open" } else { "closed" }.to_owned();
    for qer in &detail.qers {
        table.row([
            qer.id.to_string(),
            or_dash(qer.qfi.as_ref()),
            gate(qer.uplink_open),
            gate(qer.downlink_open),
            rate(qer.uplink_mbr),
            rate(qer.downlink_mbr),
        ]);
    }
    part(table, detail.qers.is_empty());
    let mut table = Table::new(&[
        ("URR", Right),
        ("UL BYTES", Right),
        ("DL BYTES", Right),
        ("THRESHOLD", Right),
        ("QUOTA", Right),
    ]);
    for urr in &detail.urrs {
        table.row([
            urr.id.to_string(),
            urr.uplink_bytes.to_string(),
            urr.downlink_bytes.to_string(),
            or_dash(urr.threshold.as_ref()),
            or_dash(urr.quota.as_ref()),
        ]);
    }
    part(table, detail.urrs.is_empty());
    if !detail.drops.is_empty() {
        text.push('\n');
        text.push_str(&drops(&detail.drops));
    }
    text
}

fn ports(ports: &[PortLine]) -> String {
    let mut table = Table::new(&[
        ("PORT", Left),
        ("DRIVER", Left),
        ("MAC", Left),
        ("MTU", Right),
        ("QUEUES", Right),
        ("LINK", Left),
        ("RX PACKETS", Right),
        ("RX BYTES", Right),
        ("MISSED", Right),
        ("ERRORS", Right),
        ("TX PACKETS", Right),
        ("TX BYTES", Right),
        ("ERRORS", Right),
    ]);
    for port in ports {
        table.row([
            port.name.clone(),
            port.driver.clone(),
            port.mac.clone(),
            port.mtu.to_string(),
            port.queues.to_string(),
            if port.link_up { "up" } else { "down" }.into(),
            port.rx_packets.to_string(),
            port.rx_bytes.to_string(),
            port.rx_missed.to_string(),
            port.rx_errors.to_string(),
            port.tx_packets.to_string(),
            port.tx_bytes.to_string(),
            port.tx_errors.to_string(),
        ]);
    }
    let mut text = table.to_string();
    if ports.iter().any(|port| !port.members.is_empty()) {
        let _ = write!(text, "\n{}", members(ports));
    }
    if ports.iter().any(|port| !port.remarks.is_empty()) {
        let mut table = Table::new(&[("PORT", Left), ("WHAT ITS DEVICE DOES", Left)]);
        for (port, remark) in ports.iter().flat_map(|port| port.remarks.iter().map(move |r| (port, r))) {
            table.row([port.name.clone(), remark.clone()]);
        }
        let _ = write!(text, "\n{table}");
    }
    text
}

/// The devices of aggregated ports.
fn members(ports: &[PortLine]) -> Table {
    let mut table = Table::new(&[
        ("PORT", Left),
        ("DEVICE", Left),
        ("LINK", Left),
        ("MBIT/S", Right),
        ("CARRIES", Left),
        ("PARTNER", Left),
    ]);
    for port in ports {
        for member in &port.members {
            table.row([
                port.name.clone(),
                member.device.clone(),
                if member.link_up { "up" } else { "down" }.into(),
                member.mbps.map_or("-".into(), |mbps| mbps.to_string()),
                if member.active { "yes" } else { "no" }.into(),
                member.partner.clone().unwrap_or_else(|| "-".into()),
            ]);
        }
    }
    table
}

fn drops(drops: &[DropLine]) -> String {
    let mut table = Table::new(&[("DROPPED", Right), ("REASON", Left), ("MEANING", Left)]);
    for drop in drops {
        table.row([drop.packets.to_string(), drop.reason.clone(), drop.meaning.clone()]);
    }
    table.to_string()
}

fn workers(workers: &[WorkerLine]) -> String {
    let mut table = Table::new(&[
        ("WORKER", Right),
        ("CORE", Right),
        ("SHARDS", Right),
        ("RECEIVED", Right),
        ("REMOTE", Right),
        ("SENT", Right),
        ("HANDED OFF", Right),
        ("DROPPED", Right),
        ("BUSY", Right),
        ("ASLEEP", Right),
        ("NOW", Left),
        ("CYCLES/PACKET", Right),
    ]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for worker in workers {
        table.row([
            worker.worker.to_string(),
            or_dash(worker.core.as_ref()),
            worker.shards.to_string(),
            worker.received.to_string(),
            worker.remote.to_string(),
            worker.sent.to_string(),
            worker.handed_off.to_string(),
            worker.dropped.to_string(),
            percent(worker.busy),
            percent(worker.asleep),
            if worker.sleeping { "asleep" } else { "awake" }.into(),
            or_dash(worker.cycles_per_packet.map(|cycles| format!("{cycles:.0}")).as_ref()),
        ]);
    }
    table.to_string()
}

fn peers(peers: &[PeerLine]) -> String {
    let mut table = Table::new(&[
        ("NODE ID", Left),
        ("ADDRESS", Left),
        ("STATE", Left),
        ("ASSOCIATED", Right),
        ("SESSIONS", Right),
        ("REQUESTS", Right),
        ("REFUSED", Right),
        ("REPEATED", Right),
        ("RETRANSMITTED", Right),
    ]);
    for peer in peers {
        table.row([
            peer.node_id.clone(),
            peer.address.to_string(),
            if peer.alive { "alive" } else { "silent" }.into(),
            ago(peer.associated_seconds),
            peer.sessions.to_string(),
            peer.requests.to_string(),
            peer.refused.to_string(),
            peer.repeated.to_string(),
            peer.retransmitted.to_string(),
        ]);
    }
    table.to_string()
}

fn flows(lines: &[FlowCounterLine]) -> String {
    let mut table = Table::new(&[("COUNT", Right), ("COUNTER", Left), ("MEANING", Left)]);
    for line in lines {
        table.row([line.value.to_string(), line.counter.clone(), line.meaning.clone()]);
    }
    table.to_string()
}

fn slices(lines: &[SliceLine]) -> String {
    if lines.is_empty() {
        return "No slices are configured.\n".into();
    }
    let mut table = Table::new(&[
        ("SLICE", Left),
        ("DIRECTION", Left),
        ("GUARANTEED", Right),
        ("MAXIMUM", Right),
        ("PACKETS", Right),
        ("BYTES", Right),
        ("BEYOND GUARANTEE", Right),
        ("DROPPED", Right),
    ]);
    for line in lines {
        table.row([
            line.name.clone(),
            line.direction.clone(),
            rate(line.guaranteed),
            rate(line.maximum),
            line.packets.to_string(),
            line.bytes.to_string(),
            line.yellow_packets.to_string(),
            line.dropped_packets.to_string(),
        ]);
    }
    table.to_string()
}

fn scale(status: &ScaleStatus) -> String {
    let ScaleStatus { model, workers, dispatchers, active, .. } = status;
    let mut text = format!("model        {model}, {workers} threads");
    if *dispatchers > 0 {
        let _ = write!(text, ", {dispatchers} of them dispatchers");
    }
    let why = match (status.asked, status.automatic) {
        (Some(asked), _) => format!("{asked} asked for"),
        (None, true) => "following the load".into(),
        (None, false) => "until asked".into(),
    };
    let _ = writeln!(text, "\nactive       {active} ({why})\nmoving       {} shards", status.moving);
    let ScaleStatus { moves, shards, parked, .. } = status;
    let _ =
        writeln!(text, "moved        {shards} shards in {moves} moves; {parked} packets parked meanwhile");
    let ScaleStatus { pause_p50_us, pause_p99_us, pause_max_us, .. } = status;
    let _ = writeln!(
        text,
        "pause        {pause_p50_us:.1} us median, {pause_p99_us:.1} us p99, {pause_max_us:.1} us at most"
    );
    let ScaleStatus { overflowed, hurried, given_up, .. } = status;
    let _ = writeln!(
        text,
        "not so well  {overflowed} packets found no room to park, {hurried} moves were hurried, {given_up} not begun"
    );
    text
}

fn qos(report: &QosReport) -> String {
    let mut classes = Table::new(&[
        ("PORT", Left),
        ("CLASS", Left),
        ("KIND", Left),
        ("QUEUED", Right),
        ("BYTES", Right),
        ("SENT", Right),
        ("BYTES", Right),
        ("DROPPED", Right),
        ("YELLOW", Right),
        ("RED", Right),
    ]);
    for line in &report.classes {
        classes.row([
            line.port.clone(),
            line.class.clone(),
            line.kind.clone(),
            line.queued_packets.to_string(),
            line.queued_bytes.to_string(),
            line.sent_packets.to_string(),
            line.sent_bytes.to_string(),
            line.dropped_green.to_string(),
            line.dropped_yellow.to_string(),
            line.dropped_red.to_string(),
        ]);
    }
    if report.receive.is_empty() {
        return format!("{classes}\nNo port steers ahead of RSS.\n");
    }
    let mut receive = Table::new(&[("PORT", Left), ("RECEIVE QUEUE", Left), ("PACKETS", Right)]);
    for line in &report.receive {
        receive.row([line.port.clone(), line.queue.clone(), line.packets.to_string()]);
    }
    format!("{classes}\n{receive}")
}

fn nat(status: &NatStatus) -> String {
    if status.pools.is_empty() && status.drops.is_empty() {
        return "Nothing is translated port by port.\n".into();
    }
    let mut table = Table::new(&[
        ("POOL", Left),
        ("BLOCKS", Right),
        ("USED", Right),
        ("FREE", Right),
        ("MAPPINGS", Right),
        ("MADE", Right),
    ]);
    for pool in &status.pools {
        table.row([
            pool.pool.clone(),
            pool.blocks.to_string(),
            pool.blocks_used.to_string(),
            pool.blocks.saturating_sub(pool.blocks_used).to_string(),
            pool.mappings.to_string(),
            pool.mappings_made.to_string(),
        ]);
    }
    let mut text = table.to_string();
    if !status.drops.is_empty() {
        text.push('\n');
        text.push_str(&drops(&status.drops));
    }
    if status.log_lines_lost > 0 {
        let _ = writeln!(text, "\n{} lines of the log of bindings were lost.", status.log_lines_lost);
    }
    text
}

fn offload(status: &OffloadStatus) -> String {
    let mut ports = Table::new(&[("PORT", Left), ("ENTRIES", Right), ("ITS RULES MAY CONTAIN", Left)]);
    for port in &status.ports {
        ports.row([port.port.clone(), or_dash(port.entries.as_ref()), joined(&port.features)]);
    }
    let mut flows = Table::new(&[
        ("WORKER", Right),
        ("PORT", Left),
        ("DIRECTION", Left),
        ("PACKETS", Right),
        ("PER SECOND", Right),
        ("FLOW", Left),
    ]);
    for flow in &status.some {
        flows.row([
            flow.worker.to_string(),
            flow.port.clone(),
            if flow.uplink { "uplink".into() } else { "downlink".into() },
            flow.packets.to_string(),
            flow.packets_per_second.to_string(),
            flow.flow.clone(),
        ]);
    }
    let mut counters = Table::new(&[("COUNT", Right), ("COUNTER", Left), ("MEANING", Left)]);
    for line in &status.counters {
        counters.row([line.value.to_string(), line.counter.clone(), line.meaning.clone()]);
    }
    let shown = match (status.some.len() as u64, status.flows) {
        (_, 0) => "No flow is in a NIC.\n".into(),
        (some, all) if some == all => flows.to_string(),
        (some, all) => format!("{flows}{some} of {all} flows are shown.\n"),
    };
    format!("{ports}\n{shown}\n{counters}")
}

fn n4(status: &N4Status) -> String {
    let mut peers = Table::new(&[
        ("NODE ID", Left),
        ("ADDRESS", Left),
        ("ASSOCIATED SINCE", Left),
        ("STARTED", Left),
        ("SESSIONS", Right),
        ("OUTSTANDING", Right),
    ]);
    for peer in &status.peers {
        peers.row([
            peer.node_id.clone(),
            peer.address.to_string(),
            peer.associated_since.clone(),
            peer.recovery.clone(),
            peer.sessions.to_string(),
            peer.outstanding.to_string(),
        ]);
    }
    let mut counters = Table::new(&[("COUNT", Right), ("OF", Left), ("COUNTER", Left), ("MEANING", Left)]);
    for counter in &status.counters {
        let layer = match counter.layer {
            N4Layer::Node => "node",
            N4Layer::Sessions => "sessions",
        };
        counters.row([
            counter.value.to_string(),
            layer.into(),
            counter.counter.clone(),
            counter.meaning.clone(),
        ]);
    }
    let peers = if status.peers.is_empty() { "No SMF is associated.\n".into() } else { peers.to_string() };
    format!("{peers}\n{counters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> SessionLine {
        SessionLine {
            seid: SeidText(0x2_0000_0001),
            cp_seid: SeidText(7),
            peer: "smf\x1b[2J.example.org".into(),
            ue_ipv4: Some([10, 45, 0, 2].into()),
            ue_ipv6: Some("2001:db8:45:2::/64".into()),
            network_instance: "internet".into(),
            shard: 311,
            rules: RuleCounts { pdrs: 2, fars: 2, qers: 1, urrs: 1 },
        }
    }

    #[test]
    fn a_page_of_sessions() {
        let page = SessionPage { total: 12, offset: 10, sessions: vec![line()] };
        insta::assert_snapshot!(shown(&Answer::Sessions(page)));
        assert_eq!(
            shown(&Answer::Sessions(SessionPage { total: 3, offset: 9, sessions: vec![] })),
            "No session to show; 3 match.\n"
        );
    }

    #[test]
    fn a_session() {
        let pdr = |id, source: &str, teid| PdrLine {
            id,
            precedence: 255,
            source: source.into(),
            teid,
            filters: vec!["udp from any to 198.51.100.0/24".into(); usize::from(id) - 1],
            far: id.into(),
            qers: vec![1, 2],
            urrs: vec![],
            packets: 10,
            bytes: 12345,
        };
        let detail = SessionDetail {
            session: line(),
            pdrs: vec![pdr(1, "access", Some(TeidText(0x0100_8001))), pdr(2, "core", None)],
            fars: vec![
                FarLine { id: 1, action: "forward".into(), destination: Some("core".into()), tunnel: None },
                FarLine {
                    id: 2,
                    action: "forward".into(),
                    destination: Some("access".into()),
                    tunnel: Some(TunnelEnd { teid: TeidText(9), peer: [198, 51, 100, 9].into() }),
                },
            ],
            qers: vec![QerLine {
                id: 1,
                uplink_open: true,
                downlink_mbr: Some(1_500_000),
                qfi: Some(9),
                ..QerLine::default()
            }],
            urrs: vec![UrrLine { id: 1, uplink_bytes: 5, threshold: Some(1000), ..UrrLine::default() }],
            drops: vec![DropLine {
                reason: "gate".into(),
                meaning: "A QER's gate is closed.".into(),
                packets: 4,
            }],
            buffered: 3,
        };
        insta::assert_snapshot!(shown(&Answer::Session(Box::new(detail))));
    }

    #[test]
    fn ports_workers_and_peers() {
        let port = PortLine {
            name: "access".into(),
            driver: "net_ice".into(),
            mtu: 9000,
            link_up: true,
            members: vec![
                MemberLine {
                    device: "0000:01:00.0".into(),
                    mbps: Some(100_000),
                    link_up: true,
                    ..MemberLine::default()
                },
                MemberLine {
                    device: "0000:01:00.1".into(),
                    active: true,
                    link_up: true,
                    partner: Some("02:00:00:00:00:bb".into()),
                    ..MemberLine::default()
                },
            ],
            remarks: vec!["its redirection table can't be changed".into()],
            ..PortLine::default()
        };
        let worker = WorkerLine {
            core: Some(2),
            shards: 512,
            received: 1_000,
            remote: 250,
            busy: 0.375,
            asleep: 0.5,
            sleeping: true,
            cycles_per_packet: Some(171.2),
            ..WorkerLine::default()
        };
        let peer = PeerLine {
            node_id: "smf.example.org".into(),
            address: ([192, 0, 2, 10], 8805).into(),
            alive: true,
            associated_seconds: 90_061,
            sessions: 5,
            requests: 12,
            refused: 1,
            repeated: 0,
            retransmitted: 0,
        };
        let mut text = shown(&Answer::Ports { ports: vec![port] });
        text += &shown(&Answer::Workers { workers: vec![worker] });
        text += &shown(&Answer::Peers { peers: vec![peer] });
        insta::assert_snapshot!(text);
    }

    #[test]
    fn queues() {
        let class = ClassLine {
            port: "access".into(),
            class: "voice".into(),
            kind: "strict to 60 %".into(),
            queued_packets: 12,
            dropped_green: 3,
            ..ClassLine::default()
        };
        let receive = ReceiveLine { port: "access".into(), queue: "control".into(), packets: 77 };
        let mut report = QosReport { classes: vec![class], receive: Vec::new() };
        assert_eq!(
            shown(&Answer::Qos(report.clone())),
            "PORT    CLASS  KIND            QUEUED  BYTES  SENT  BYTES  DROPPED  YELLOW  RED\n\
             access  voice  strict to 60 %      12      0     0      0        3       0    0\n\n\
             No port steers ahead of RSS.\n"
        );
        report.receive.push(receive);
        assert!(shown(&Answer::Qos(report)).ends_with("access  control             77\n"));
    }

    #[test]
    fn spans_of_time() {
        for (seconds, text) in [(0, "0s"), (61, "1m 1s"), (3660, "1h 1m"), (90_000, "1d 1h")] {
            assert_eq!(ago(seconds), text);
        }
    }
}
