//! How is all of it held together?
//!
//! A whole UPF: ports, workers, N4 and the control socket, held together by one control thread.
//!
//! [`Upf::start`] takes a [`Config`] and ports that somebody opened (DPDK's in `millrace run`, in-memory ones in
//! `millrace demo` and in benchmarks) and builds everything else. [`Upf::run`] is the control thread's loop: datagrams and workers'
//! events in, orders and datagrams out; it sleeps when there is nothing to do.
#![forbid(unsafe_code)]

mod applications;
mod assemble;
mod backend;
mod bindings;
mod capture;
mod convert;
pub mod cores;
mod describe;
mod describe_n4;
mod describe_network;
mod describe_qos;
mod describe_sessions;
mod flow_log;
mod inspections;
mod inspector;
mod journal;
pub mod kernel;
mod labels;
mod leaving;
pub mod lookups;
mod metrics;
mod mirrors;
mod n4_socket;
pub mod needs;
mod offload;
mod options;
mod reload;
mod restart;
mod scale;
mod server;
mod sums;
mod turns;
mod view;

pub use assemble::{BYTES_PER_FLOW, HELD_SHARE};
pub use backend::Backend;
pub use flow_log::FlowLogCounters;
pub use inspector::Detector;
pub use metrics::PortCounters;
pub use n4_socket::SOCKET_BUFFER;
pub use options::{Options, UpfError};
pub use reload::Reloaded;
pub use restart::file::{FileError, Saved};
pub use server::{CtlBindError, CtlServer, Responder, Timeouts};

use bindings::Bindings;
use config::Config;
use datapath::Rib;
use datapath::command::{Command, Event, Token};
use engine::{Engine, Fence, WorkerReport};
use flow_log::FlowLog;
use inspections::Inspections;
use io::Port;
use labels::Names;
use machine::topology::SYSFS;
use metrics::MetricsServer;
use n4::{N4, Order};
use n4_socket::Sockets;
use restart::dump::Dumping;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use session::applications::Applications;
use session::store::DirectoryChange;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tables::Nanos;
use tables::clock::Tsc;
use turns::Turns;
use view::{Given, Post, View};

/// Datagrams taken in one round, so that workers' events are not kept waiting.
const DATAGRAMS_PER_ROUND: usize = 64;
/// Longest sleep; stopping is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Rounds without work before control blocks: an answer of a worker is some microseconds away, less than a sleep costs.
const ROUNDS_BEFORE_SLEEP: u32 = 64;
/// A UDP datagram can't be longer.
const LONGEST_DATAGRAM: usize = 65_535;

/// A UPF that was started.
pub struct Upf {
    config: Config,
    /// Packets for UEs that the ports' pools were made for.
    most_buffered: u32,
    rib: Rib,
    n4: N4,
    engine: Engine,
    sockets: Sockets,
    /// They are open as long as it runs.
    _ports: Arc<view::Ports>,
    view: View,
    post: Post,
    ctl: Option<CtlServer>,
    metrics: Option<MetricsServer>,
    jobs: backend::Jobs,
    clock: Tsc,
    time_of_day: fn() -> SystemTime,
    /// The log of the translation on N6.
    bindings: Option<Bindings>,
    flow_log: Option<FlowLog>,
    /// Of applications.
    names: Names,
    inspections: Inspections,
    /// Who looks into packets.
    detector: Option<Detector>,
    turns: Turns,
    /// Requests whose answer waits until all workers have passed a fence, in order.
    fenced: VecDeque<(Fence, Token)>,
    mirrors: mirrors::Mirrors,
    dumping: Dumping,
    stopping: bool,
    /// SMFs are not told that it stops: another process goes on.
    silently: bool,
    buffer: Box<[u8]>,
}

impl Upf {
    /// Builds the UPF and starts its workers. Ports are given in the configuration's order.
    pub fn start<P>(config: &Config, mut ports: Vec<P>, options: Options) -> Result<Self, UpfError>
    where
        P: Port + 'static,
        P::Rx: 'static,
        P::Tx: 'static,
        P::Pool: 'static,
    {
        let socket = config.socket.clone().unwrap_or_else(api::default_socket);
        let config = &Config { socket: Some(socket.clone()), ..config.clone() };
        if ports.len() != config.ports.len() {
            return Err(UpfError::Ports { configured: config.ports.len(), open: ports.len() });
        }
        tell_what_is_not_steered(config, &ports);
        let time_of_day = options.time_of_day.unwrap_or(SystemTime::now);
        let former = options.restore.clone();
        let former = former.as_ref().map(|saved| (saved, saved.header()));
        let clock = assemble::clock(former.map(|(_, header)| header), time_of_day);
        let macs: Vec<_> = ports.iter().map(|port| port.info().mac).collect();
        let mut rib = assemble::rib(config, &macs)?;
        let seed = assemble::random()?;
        let teids = former.map_or_else(assemble::teid_key, |(_, header)| Ok(header.teids()))?;
        let bindings = config.nat.log.as_deref().map(|path| {
            let failed = |source| UpfError::NatLog { path: path.to_owned(), source };
            bindings::open(path).map_err(failed)
        });
        let bindings = bindings.transpose()?;
        let flow_log = config.flow_log.file.as_deref().map(|path| {
            let failed = |source| UpfError::FlowLog { path: path.to_owned(), source };
            flow_log::open(path, config.flow_log.max_bytes).map_err(failed)
        });
        let flow_log = flow_log.transpose()?;
        let sockets = Sockets::listen(config.n4.listen, kernel::PROC_NET.into())?;
        let address = assemble::n4_address(config, config.n4.listen.ip()).ok_or(UpfError::NoAddress)?;
        let mut applications = Applications::default();
        let detector = Detector::new(&config.inspection, &mut applications)?;
        let mut sessions = assemble::sessions(config, applications, seed as u32, teids);
        sessions.epoch = former.map_or(sessions.epoch, |(_, header)| header.epoch());
        // No UE gets to N4, nor has an address of it.
        for local in sockets.local() {
            rib.protect(local);
            sessions.own.push(local);
        }
        let prefixes = sessions.prefix_lengths();
        let store = session::store::Store::new(sessions).map_err(UpfError::Pool)?;
        let mut node = assemble::node(config, &options);
        if let Some((saved, header)) = former {
            if header.node_id != node.node_id {
                let path = saved.path().to_owned();
                return Err(UpfError::OtherNode { path, node: header.node_id.to_string() });
            }
            if header.address != address {
                tracing::warn!(before = %header.address, now = %address, "SMFs know another N4 address of this UPF");
            }
            node.recovery = header.recovery;
        }
        let wall = assemble::wall_clock(clock.now(), time_of_day);
        let frames = ports.iter().filter_map(Port::frames).min();
        let datapath =
            datapath::Config { teids, prefixes, ..assemble::datapath(config, rib.fib(), seed, frames) };
        let inspection = detector.as_ref().map(|detector| detector.inspection(&config.inspection));
        let datapath = datapath::Config { inspection, ..datapath };
        let far_ends = usize::from(datapath.peers);
        let n4 = N4::new(clock.now(), node, store, address, &config.n4.associate_with, far_ends, wall);
        let no_ctl = options.no_ctl;
        let cores = cores::place(config, SYSFS.as_ref())?;
        cores.log();
        let lookups = lookups::choose(config.lookup, options.lookups.as_ref())?;
        let mut engine = assemble::engine(config, cores, options, seed);
        engine.lookups = lookups;
        // The first packets find all sessions.
        engine.resting = former.is_some();
        let engine = Engine::start(&mut ports, &engine, &datapath, clock)?;
        let jobs = backend::Jobs::new()?;
        let ports: Arc<view::Ports> = Arc::new(Mutex::new(move || ports.iter().map(convert::port).collect()));
        let nat = rib.nat().cloned().unwrap_or_default();
        let given = Given { config: config.clone(), nat, mirrors: Vec::new() };
        let (view, post) = View::new(engine.snapshots(), given, &ports, clock);
        let serve = |address| {
            let failed = |source| UpfError::Metrics { address, source };
            MetricsServer::start(address, view.clone()).map_err(failed)
        };
        let metrics = config.metrics.listen.map(serve).transpose()?;
        let ctl = if no_ctl {
            None
        } else {
            Some(CtlServer::start(&socket, Arc::new(jobs.backend(view.clone())), Timeouts::default())?)
        };
        let mut upf = Self {
            config: config.clone(),
            most_buffered: config.limits.buffered_packets,
            rib,
            n4,
            engine,
            sockets,
            _ports: ports,
            view,
            post,
            ctl,
            metrics,
            jobs,
            clock,
            time_of_day,
            bindings,
            flow_log,
            names: Names::default(),
            inspections: Inspections::default(),
            detector,
            turns: Turns::default(),
            fenced: VecDeque::new(),
            mirrors: mirrors::Mirrors::new(macs),
            dumping: Dumping::default(),
            stopping: false,
            silently: false,
            buffer: vec![0; LONGEST_DATAGRAM].into(),
        };
        if let Some((saved, _)) = former {
            upf.restore(saved)?;
            upf.publish(upf.clock.now(), true);
        }
        Ok(upf)
    }

    /// Where SMFs reach it: the configured address, with the port that the system chose if port 0 was asked for.
    pub const fn n4_address(&self) -> SocketAddr {
        self.sockets.address()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(MetricsServer::address)
    }

    /// The control socket.
    pub fn ctl_path(&self) -> Option<&std::path::Path> {
        self.ctl.as_ref().map(CtlServer::path)
    }

    /// Asks it questions from another thread, as the control socket does.
    pub fn backend(&self) -> Backend {
        self.jobs.backend(self.view.clone())
    }

    /// Runs until `stop` is set or `ctl` says so, then stops cleanly: SMFs are told the last usage of their sessions and that the UPF
    /// goes, unless another process goes on with them; workers finish what they have. Returns the workers' final counters.
    ///
    /// Errors: among others, that a worker died whose work no other could take over. SMFs are told then too.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Vec<WorkerReport>, UpfError> {
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) && !self.stopping && self.engine.lost().is_none() {
            if self.round() > 0 {
                idle = 0;
            } else {
                idle += 1;
                if idle == ROUNDS_BEFORE_SLEEP {
                    self.publish(self.clock.now(), true);
                }
                if idle > ROUNDS_BEFORE_SLEEP {
                    self.sleep()?;
                } else {
                    std::thread::yield_now();
                }
            }
        }
        drop((self.ctl.take(), self.metrics.take()));
        if !self.silently {
            self.end_dump();
            self.take_leave();
        }
        let (lost, wall) = (self.engine.lost(), self.n4.wall());
        let (bindings, flow_log, names) = (self.bindings.take(), self.flow_log.take(), self.names.clone());
        let plan = self.rib.nat();
        let reports = self.engine.stop_with(|_, event| match (event, &bindings, &flow_log) {
            (Event::Nat(told), Some(bindings), _) => bindings.tell((plan.cloned().unwrap_or_default(), told)),
            // Nobody waits for control any more.
            (Event::Flows(records), _, Some(log)) => log.tell_patiently((wall, names.clone(), records)),
            _ => {}
        });
        self.mirrors.finish();
        match lost {
            Some(worker) => Err(UpfError::WorkerLost(worker)),
            None => Ok(reports?),
        }
    }

    /// One round of everything; says how much there was to do.
    fn round(&mut self) -> usize {
        self.end_dump_that_hangs();
        let work = self.serve();
        scale::regulate(&mut self.engine);
        work + self.answer_one(work > 0 && !self.dumping.holds())
    }

    /// Does one job of those who ask, if it is their turn: N4 comes between any two.
    fn answer_one(&mut self, busy: bool) -> usize {
        let begun = self.clock.now();
        if !self.turns.may(begun, busy) {
            return 0;
        }
        let Some(job) = self.jobs.next() else { return 0 };
        job(self);
        self.turns.spent(begun, self.clock.now());
        1
    }

    /// One round of N4 and workers.
    fn serve(&mut self) -> usize {
        let now = self.clock.now();
        self.publish(now, false);
        self.tell_time(now);
        let holds = self.dumping.holds();
        let mut work = if holds { 0 } else { self.receive(now) };
        work += self.take_events(now);
        if !holds && self.n4.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.n4.tick(now);
        }
        work += self.give_orders();
        self.provision();
        self.send();
        work
    }

    /// Hands what SMFs have said of applications to whoever inspects.
    fn provision(&mut self) {
        if let Some(pfds) = self.n4.take_pfds()
            && let Some(detector) = &self.detector
        {
            detector.provision(&pfds);
        }
    }

    /// Looks at the system's clock, which may have been corrected.
    fn tell_time(&mut self, now: Nanos) {
        let correction = self.n4.tell_time(assemble::wall_clock(now, self.time_of_day));
        if correction.unsigned_abs() >= u128::from(Nanos::SECOND) {
            let seconds = correction as f64 / Nanos::SECOND as f64;
            tracing::warn!(seconds, "the system's clock was set: reports and logs follow it");
        }
    }

    fn receive(&mut self, now: Nanos) -> usize {
        // The kernel has an address more, which N4 listens on.
        let local = self.sockets.look(now);
        if local.into_iter().fold(false, |new, address| new | self.rib.protect(address)) {
            let fib = self.rib.fib();
            self.engine.broadcast(|| Command::Fib(fib.clone()));
        }
        for taken in 0..DATAGRAMS_PER_ROUND {
            let Some((length, from)) = self.sockets.receive(&mut self.buffer) else { return taken };
            self.n4.receive(now, from, self.buffer.get(..length).unwrap_or_default());
        }
        DATAGRAMS_PER_ROUND
    }

    fn take_events(&mut self, now: Nanos) -> usize {
        let mut events = 0;
        let mut learned = Vec::new();
        let mut ended = Vec::new();
        if self.names.learn(&self.n4.store().config().applications) {
            self.view.applications.learn(&self.names);
        }
        let names = &self.names;
        let sums = &self.view.applications;
        let (n4, rib, inspections) = (&mut self.n4, &mut self.rib, &mut self.inspections);
        let dumping = &mut self.dumping;
        let (bindings, flow_log, wall) = (self.bindings.as_ref(), self.flow_log.as_ref(), n4.wall());
        self.engine.drain(|worker, event| {
            events += 1;
            match event {
                Event::Neighbour { interface, address, mac, confirmed } => {
                    rib.learn(interface, address, mac);
                    learned.push((interface, address, mac, confirmed));
                }
                Event::NeighbourMoved { interface, address, from, to, believed } => {
                    let interface = rib.interfaces().get(usize::from(interface));
                    let interface = interface.map_or("", |interface| interface.name.as_str());
                    let (from, to) = (from.to_string(), to.to_string());
                    if believed {
                        tracing::warn!(interface, %address, from, to, "a neighbour has another MAC address");
                    } else {
                        tracing::warn!(interface, %address, from, to, "a neighbour claims another MAC address: not believed");
                    }
                }
                Event::MirrorsEnded { mut numbers } => ended.append(&mut numbers),
                Event::Nat(told) => {
                    if let Some(bindings) = bindings {
                        bindings.tell((rib.nat().cloned().unwrap_or_default(), told));
                    }
                }
                Event::Flows(records) => {
                    if let Some(log) = flow_log {
                        log.tell((wall, names.clone(), records));
                    }
                }
                Event::Snapshot { token, session } if Inspections::has(token) => {
                    inspections.session(token, session);
                }
                Event::Exported { token, sessions } => dumping.exported(n4, token, sessions),
                Event::Neighbours { token, seen, next } => inspections.neighbours(token, seen, next),
                Event::Carried { at, inspected, sums: told } => sums.tell(worker, at, inspected, told),
                Event::OffloadFailed { port, failure } => {
                    tracing::warn!(port, failure, "the NIC lost its flows: software forwards them");
                }
                other => n4.event(now, other),
            }
        });
        while let Some((_, token)) = self.fenced.pop_front_if(|(fence, _)| self.engine.passed(*fence)) {
            self.n4.directory_known(now, token);
        }
        if !ended.is_empty() {
            mirrors::ended(self, &ended);
        }
        for (interface, address, mac, confirmed) in learned {
            self.engine.broadcast(|| Command::Neighbour { interface, address, mac, confirmed });
        }
        events
    }

    fn give_orders(&mut self) -> usize {
        let mut orders = 0;
        let mut fenced = Vec::new();
        for order in self.n4.take_orders() {
            orders += 1;
            match order {
                Order::Shard(shard, command) => self.engine.post(shard, command),
                Order::All(change) => self.engine.broadcast(|| direct(change)),
                Order::Fence(token) => fenced.push(token),
            }
        }
        if !fenced.is_empty() {
            // One for all requests of the round.
            let fence = self.engine.fence();
            self.fenced.extend(fenced.into_iter().map(|token| (fence, token)));
        }
        self.engine.flush();
        orders
    }

    fn send(&mut self) {
        let output = self.n4.output();
        for (to, datagram) in output.datagrams() {
            self.sockets.send(datagram, to);
        }
        output.clear();
    }

    /// Blocks until there is something to do.
    fn sleep(&self) -> Result<(), UpfError> {
        let now = self.clock.now();
        let holds = self.dumping.holds();
        let deadline = self.n4.next_deadline().filter(|_| !holds);
        let until = deadline.map_or(u64::MAX, |deadline| deadline.since(now));
        let longest = Duration::from_nanos(until).min(LONGEST_SLEEP);
        if self.engine.about_to_sleep() && !longest.is_zero() {
            let timeout = Timespec { tv_sec: 0, tv_nsec: longest.as_nanos() as _ };
            let mut fds: Vec<PollFd<'_>> = self.sockets.poll_fds().filter(|_| !holds).collect();
            fds.push(PollFd::new(self.engine.waker(), PollFlags::IN));
            fds.push(PollFd::new(&self.jobs, PollFlags::IN));
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(UpfError::Os(error.into())),
            }
        }
        self.engine.waker().awake();
        self.jobs.awake();
        Ok(())
    }
}

/// What a worker is told of where sessions are.
const fn direct(change: DirectoryChange) -> Command {
    match change {
        DirectoryChange::Tunnel { teid, place } => Command::Directory { teid, place },
        DirectoryChange::Address { prefix, session } => Command::AddressDirectory { prefix, session },
    }
}

/// Some of the queues that were asked for may not be there; nothing else depends on it. Why is among the port's remarks.
fn tell_what_is_not_steered<P: Port>(config: &Config, ports: &[P]) {
    let wanted = &config.qos.steering;
    for port in ports {
        let (name, steering) = (&port.info().name, port.steering());
        // Where not all groups have queues, the most urgent ones do.
        let groups = steering.map_or(0, |steering| steering.groups().len());
        let without: Vec<_> = wanted.groups().iter().skip(groups).map(|group| group.name.as_str()).collect();
        if !without.is_empty() {
            let without = without.join(", ");
            tracing::warn!("port {name} has no receive queues for these groups of [qos]: {without}");
        }
        if wanted.control().is_some() && steering.is_none_or(|steering| steering.control().is_none()) {
            tracing::info!("port {name} has no control queue");
        }
    }
}
