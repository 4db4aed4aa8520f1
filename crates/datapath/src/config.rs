//! What a worker's datapath is told once.

use crate::network::asked::Asked;
use crate::network::fib::Fib;
use crate::network::peer::Numbers;
use crate::state::marking::Marking;
use crate::state::permit::Places;
use crate::state::slice::Slice;
use std::sync::Arc;

/// Limits and rates of one worker. Nothing in the datapath grows beyond these.
#[derive(Clone, Debug)]
pub struct Config {
    /// The network at the start.
    pub fib: Arc<Fib>,
    /// Random; keeps others from choosing keys that collide.
    pub seed: u64,
    /// What TEIDs of our own making are sealed with.
    pub teids: session::TeidKey,
    /// How much of an IPv6 address names a UE: as sessions' addresses were given.
    pub prefixes: session::PrefixLengths,
    /// Whether tunnels' packets have to come from the tunnels' other ends.
    pub check_source: CheckSource,
    /// Session slots in each shard.
    pub sessions_per_shard: u32,
    /// Flows of all 512 shards together; a worker may have as large a part of them as it has of the shards. Beyond, one that was idle for
    /// long makes room.
    pub flows: u32,
    /// Flows for which each shard has memory from the start, so that none waits for it; those beyond take it as they come.
    pub flows_reserved_per_shard: u32,
    /// Bytes of memory that are kept ready for flow tables that grow ([`crate::Datapath::wish`]); 0: they take it as they need it.
    pub flow_supply: usize,
    /// Flows of one session; the packets of further ones are classified one by one.
    pub flows_per_session: u32,
    /// Packets of unknown flows that one burst may bring to their rules however full its port's queue is.
    pub new_flows_in_overload: u32,
    /// Seconds without a packet after which a flow is forgotten, at most 32,767.
    pub flow_idle: u16,
    /// Who looks into packets, for rules that ask for applications; `None`: nobody, and such rules match nothing.
    pub inspection: Option<crate::inspect::Inspection>,
    /// Beginnings of applications' traffic that are told a second.
    pub application_rate: u32,
    /// Answers to UEs whose packets are redirected, a second.
    pub redirect_rate: u32,
    /// What is told of single flows; `None`: nothing.
    pub export: Option<crate::state::export::Policy>,
    /// Mappings of NAT in each shard.
    pub mappings_per_shard: u32,
    /// Far ends of tunnels, of all workers with the same numbers together.
    pub peers: u16,
    /// Their numbers. Workers that shards move between share them.
    pub peer_numbers: Arc<Numbers>,
    /// Whom workers asked for: they share it, so that each learns from the answers that reach the others.
    pub asked: Arc<Asked>,
    /// Neighbours remembered, on each interface.
    pub neighbours: usize,
    /// Frames waiting for one neighbour's MAC address; a newer one replaces the oldest.
    pub neighbour_queue: usize,
    /// Packets buffered for all sessions, of all workers together that share it; a session's own limit is in its rules.
    pub buffered: Arc<Places>,
    /// Frames held back at a time, for want of other fragments or of a neighbour's MAC address: a share of the packet pool that others can do without.
    pub held_frames: usize,
    /// Packets being reassembled at a time.
    pub reassemblies: usize,
    /// First fragments remembered, for filtered sessions.
    pub fragment_flows: usize,
    /// How long fragments wait for others, in nanoseconds (RFC 8200 §4.5 says 60 s; a tunnel's fragments follow
    /// each other closely).
    pub fragment_timeout: u64,
    /// Depth of every MBR bucket, as time in nanoseconds: a rate may be exceeded for this long after a silence.
    pub meter_burst: u64,
    /// Slices, by the index that rules name them by.
    pub slices: Vec<Slice>,
    /// QFI and DSCP.
    pub marking: Marking,
    /// GTP-U echo responses a second.
    pub echo_rate: u32,
    /// GTP-U error indications and supported extension headers notifications a second; and error indications of far ends that
    /// are believed.
    pub error_rate: u32,
    /// ICMP answers and errors, and neighbour advertisements, a second.
    pub icmp_rate: u32,
}

impl Config {
    /// Defaults for this network.
    pub fn new(fib: Arc<Fib>) -> Self {
        Self {
            fib,
            seed: 0x6d69_6c6c_7261_6365,
            teids: session::TeidKey::default(),
            prefixes: session::PrefixLengths::default(),
            check_source: CheckSource::Off,
            sessions_per_shard: 1 << 15,
            flows: 1 << 24,
            flows_reserved_per_shard: 0,
            flow_supply: 0,
            flows_per_session: 4096,
            new_flows_in_overload: 1,
            flow_idle: 30,
            inspection: None,
            application_rate: 1000,
            redirect_rate: 20_000,
            export: None,
            mappings_per_shard: 1 << 13,
            peers: 8192,
            peer_numbers: Arc::default(),
            asked: Arc::default(),
            neighbours: 4096,
            neighbour_queue: 3,
            buffered: Places::new(16_384),
            held_frames: 1024,
            reassemblies: 256,
            fragment_flows: 1024,
            fragment_timeout: 2_000_000_000,
            meter_burst: 100_000_000,
            slices: Vec::new(),
            marking: Marking::default(),
            echo_rate: 10_000,
            error_rate: 1000,
            icmp_rate: 1000,
        }
    }
}

/// Whether tunnels' packets are dropped that come from somebody else than the tunnel's other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CheckSource {
    /// All pass.
    #[default]
    Off,
    /// Those of far ends that the session names, and of who was heard first.
    Learn,
    /// Those of far ends that the session names, if it names any.
    Strict,
}
