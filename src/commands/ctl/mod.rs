//! `millrace ctl`: ask a running UPF, and show the answer as a table or as JSON.

mod machine;
mod mirror;
mod n4;
mod network;
mod sessions;
mod traffic;
mod words;

use crate::exit::{Exit, Failure};
use crate::output;
use api::*;
use clap::Subcommand;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use words::{ago, printable};

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
        /// Only those of this user: IMSI, MSISDN, NAI, …
        #[arg(long, value_name = "ID")]
        user: Option<String>,
        /// Only those with this DNN or APN.
        #[arg(long, value_name = "NAME")]
        dnn: Option<String>,
        /// Only the one with this tunnel of the UPF.
        #[arg(long)]
        teid: Option<TeidText>,
        /// Only those of the SMF with this Node ID.
        #[arg(long, value_name = "NODE-ID")]
        peer: Option<String>,
        /// Only those with this Network Instance, as their SMF named it.
        #[arg(long, value_name = "NAME")]
        network_instance: Option<String>,
    },
    /// Show all about a session.
    Session(sessions::Which),
    /// Show ports and their counters.
    Ports,
    /// Show dropped packets by reason.
    Drops,
    /// Show workers and their load; or what each stage of a packet's way costs them.
    Workers {
        /// What parsing, look-ups, serving and judging cost, counted for a second. Until then nobody pays for it.
        #[arg(long)]
        stages: bool,
    },
    /// Show SMFs.
    Peers,
    /// Show associations and what N4 counts; or what SMFs asked for lately, and why it was refused.
    N4(n4::Args),
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
        /// Also counters that are 0.
        #[arg(long)]
        all: bool,
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
    Offload {
        /// Also counters that are 0.
        #[arg(long)]
        all: bool,
    },
    /// Show where packets go: interfaces' subnets and routes.
    Routes,
    /// Show neighbours whose MAC address is known.
    Neighbours,
    /// Show gNBs and other UPFs that sessions send to.
    Gnbs,
    /// Show pools of UE addresses and how full they are.
    Pools,
    /// Print the configuration in force, defaults filled in, as a file that can be read again.
    Config,
    /// Stop the UPF.
    Stop,
}

impl Command {
    fn request(&self) -> Request {
        match self {
            Self::Version => Request::Version,
            Self::Sessions { offset, limit, ue, user, dnn, teid, peer, network_instance } => {
                Request::Sessions(SessionQuery {
                    offset: *offset,
                    limit: *limit,
                    ue: *ue,
                    user: user.clone(),
                    dnn: dnn.clone(),
                    teid: *teid,
                    peer: peer.clone(),
                    network_instance: network_instance.clone(),
                })
            }
            Self::Session(which) => Request::Session(which.selector()),
            Self::Ports => Request::Ports,
            Self::Drops => Request::Drops,
            Self::Workers { stages: false } => Request::Workers,
            Self::Workers { stages: true } => Request::Stages,
            Self::Peers => Request::Peers,
            Self::N4(args) => args.request(),
            Self::Flows { watermark_bytes: None, watermark_packets: None, no_watermarks: false, .. } => {
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
            Self::Offload { .. } => Request::Offload,
            Self::Routes => Request::Routes,
            Self::Neighbours => Request::Neighbours,
            Self::Gnbs => Request::Gnbs,
            Self::Pools => Request::Pools,
            Self::Config => Request::Config,
            Self::Stop => Request::Stop,
        }
    }

    /// Whether counters that are 0 are shown too.
    const fn all(&self) -> bool {
        match self {
            Self::N4(args) => args.all(),
            Self::Flows { all, .. } | Self::Offload { all } => *all,
            _ => false,
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
    let mut client = CtlClient::connect(&socket, PATIENCE)?;
    if let Command::N4(n4) = &args.command
        && let Some(query) = n4.follow()
    {
        return n4::follow(&mut client, query, args.json);
    }
    let mut answer = client.ask(&args.command.request())?;
    if let Command::Mirror(mirror::Command::Remove { id }) = &args.command
        && !args.json
    {
        // The answer is how the mirror ended; who ends one looks for those that are left.
        output::text(&format!("Mirror {id} has ended.\n"))?;
        answer = client.ask(&Request::Mirror(MirrorRequest::List))?;
    }
    if args.json { output::json(&answer) } else { output::text(&shown(&answer, args.command.all())) }
}

/// The answer for people; `all`: with counters that are 0.
fn shown(answer: &Answer, all: bool) -> String {
    match answer {
        Answer::Version(version) => format!(
            "millrace {}, node {}, process {}, up {}, {} sessions\n",
            version.version,
            printable(&version.node_id),
            version.pid,
            ago(version.uptime_seconds),
            version.sessions
        ),
        Answer::Sessions(page) => sessions::page(page),
        Answer::Session(detail) => sessions::detail(detail),
        Answer::Ports { ports } => machine::ports(ports),
        Answer::Drops { drops } if drops.is_empty() => "Nothing was dropped.\n".into(),
        Answer::Drops { drops } => traffic::drops(drops),
        Answer::Workers { workers } => machine::workers(workers),
        Answer::Stages { stages } => machine::stages(stages),
        Answer::Peers { peers } if peers.is_empty() => "No SMF is associated.\n".into(),
        Answer::Peers { peers } => n4::peers(peers),
        Answer::N4(status) => n4::status(status, all),
        Answer::N4Log(log) => n4::log(log),
        Answer::Flows { flows } => traffic::flows(flows, all),
        Answer::Slices { slices } => traffic::slices(slices),
        Answer::Qos(report) => traffic::qos(report),
        Answer::Scale(status) => machine::scale(status),
        Answer::Mirrors { mirrors } => mirror::shown(mirrors),
        Answer::Nat(status) => traffic::nat(status),
        Answer::Offload(status) if status.ports.is_empty() => {
            "Nothing is to be offloaded (offload.mode).\n".into()
        }
        Answer::Offload(status) => traffic::offload(status, all),
        Answer::Routes { routes } => network::routes(routes),
        Answer::Neighbours { neighbours } if neighbours.is_empty() => "No neighbour is known.\n".into(),
        Answer::Neighbours { neighbours } => network::neighbours(neighbours),
        Answer::Gnbs { gnbs } if gnbs.is_empty() => "No session sends to a gNB or another UPF.\n".into(),
        Answer::Gnbs { gnbs } => network::gnbs(gnbs),
        Answer::Pools { pools } if pools.is_empty() => "There are no pools: SMFs name UE addresses.\n".into(),
        Answer::Pools { pools } => network::pools(pools),
        Answer::Config { toml } => toml.clone(),
        Answer::Stopping => "It stops.\n".into(),
        Answer::Error(error) => format!("{error}\n"),
    }
}
