//! `n4 --readers`: what is left of N4 and of forwarding while many others ask.
//!
//! Clients of the control socket, each on a connection and a thread of its own, ask all questions that change nothing, one after the other, without
//! pause ([`questions`]). Beside them a worker forwards half of what it can take ([`crate::steady`]), and the SMF model establishes sessions. Rounds
//! with and without readers alternate within one run, so that a ratio is of the same minute of the same machine.
//!
//! **Who runs where.** The worker has a core to itself, as in service; control thread, SMF model, the control socket's threads and those who ask share
//! the others. Where these are few, whoever asks without pause takes the processor from everybody, which says nothing of the UPF: so
//! the asking threads have the lowest priority that there is (nice 19 where the others have 0). Those that answer are the UPF's own, and run as they do in service.

use crate::jitter::{Away, Whom};
use crate::n4::{N4Error, clean};
use crate::path;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::rig::{self, Rig, RigError};
use crate::steady::{SteadyPort, Traffic};
use api::{CtlClient, CtlClientError, CtlError, ErrorCode, Question, Request, SeidText, TeidText, Visit};
use engine::placement::{available_cores, pin_to_any};
use io::replay::{Patch, ReplayError, Stream, WORDS};
use loadgen::facts::{Network, SessionFacts};
use loadgen::habits::Shape;
use loadgen::smf::{Operation, Smf, SmfConfig, SmfError};
use packet::{PacketBuilder, PduSession, pdu_session};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tables::clock::Tsc;

/// gNBs that the sessions are spread over.
const GNBS: u16 = 8;
/// More than any worker takes: its queue is always full.
const TOO_MANY: f64 = 1e9;
/// Of what a worker can take, so much comes.
const LOAD: f64 = 0.5;
/// How long it is looked how much a worker can take.
const SATURATED: Duration = Duration::from_secs(1);
/// The longest that it takes until each session has had a packet.
const WARM_UP: Duration = Duration::from_mins(1);
/// Between two rounds, so that what one left behind is done.
const PAUSE: Duration = Duration::from_millis(300);
/// A question may wait for workers and for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// By so much the asking threads' priority is below the others': by as much as it can be.
const NICE: i32 = 19;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ReadersConfig {
    /// Sessions that stand meanwhile.
    pub kept: Vec<u32>,
    /// Clients that ask.
    pub readers: u16,
    /// Establishments in each round.
    pub requests: u32,
    /// Rounds without readers, and as many with them.
    pub pairs: usize,
    /// Requests outstanding.
    pub window: usize,
}

impl ReadersConfig {
    /// Fifty who ask about a million sessions.
    pub fn full() -> Self {
        Self { kept: vec![1_000_000], readers: 50, requests: 200_000, pairs: 7, window: 64 }
    }

    /// Fewer, and shorter.
    pub fn quick() -> Self {
        Self { kept: vec![65_536], requests: 250_000, pairs: 5, ..Self::full() }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum ReadersError {
    /// The UPF.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The SMF model.
    #[error("SMF: {0}")]
    Smf(#[from] SmfError),
    /// Requests were refused or lost.
    #[error(transparent)]
    N4(#[from] N4Error),
    /// The packets made here are wrong: a defect.
    #[error("replay: {0}")]
    Replay(#[from] ReplayError),
    /// The operating system refuses a thread, or to place one.
    #[error("threads: {0}")]
    Os(#[from] std::io::Error),
    /// The UPF can't be asked.
    #[error(transparent)]
    Asked(#[from] CtlClientError),
    /// A worker doesn't tell of itself.
    #[error(transparent)]
    Worker(#[from] CtlError),
    /// A question had no answer.
    #[error("a reader asked in vain: {0}")]
    Unanswered(String),
    /// Nothing was forwarded.
    #[error("nothing was forwarded")]
    Nothing,
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &ReadersConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, ReadersError> {
    let mut report = Report::new("n4", &clock);
    for &kept in &config.kept {
        let place = Place::take()?;
        let mut bench = Bench::start(config, kept, place.worker, clock, progress)?;
        let readers = Readers::start(&bench.socket, config.readers, &bench.asked)?;
        let mut rounds = [Vec::new(), Vec::new()];
        for pair in 0..config.pairs {
            // Whoever comes second finds the same in half of the pairs.
            for with in [pair % 2 == 1, pair % 2 == 0] {
                let what = if with { "with" } else { "without" };
                progress.tell(&format!("{kept} sessions, {what} readers: {} of {}", pair + 1, config.pairs));
                rounds[usize::from(with)].push(bench.round(with.then_some(&readers), config.requests)?);
            }
        }
        add(&mut report, config, kept, &rounds);
        report.notes.push(format!(
            "{kept} sessions: the worker {}; it can take {:.2} million packets/s, and half of that comes",
            place.said(),
            bench.capacity / 1e6
        ));
        progress.keep(&report);
        readers.end();
        bench.stop()?;
    }
    report.notes.push(format!(
        "ratio: establishments a second with readers, by those of the round without that stands beside it; readers ask all questions that change \
         nothing, in a loop, on threads of less priority (nice {NICE} below the others); two of them take a second each, in which workers are watched; packets_lost: missed by the \
         receive queue, or dropped; packets_missed_away: missed while others ran on the worker's core, for worker_kept_from_running_ms in all"
    ));
    Ok(report)
}

fn add(report: &mut Report, config: &ReadersConfig, kept: u32, rounds: &[Vec<Round>; 2]) {
    let params =
        |readers: u16| [("kept", Param::from(u64::from(kept))), ("readers", u64::from(readers).into())];
    for (readers, rounds) in [0, config.readers].into_iter().zip(rounds) {
        let mut of = |name, unit, more: &[(&'static str, Param)], figure: fn(&Round) -> f64| {
            let runs: Vec<f64> = rounds.iter().map(figure).collect();
            let params: Vec<_> = params(readers).into_iter().chain(more.iter().cloned()).collect();
            report.results.push(Measured::of(name, unit, &params, &runs));
        };
        let establish = [("outstanding", (config.window as u64).into()), ("request", "establish".into())];
        of("requests_per_second", "1/s", &establish, |round| round.established);
        of("packets_per_second", "1/s", &[], |round| round.forwarded);
        of("packets_lost", "packets", &[], |round| round.lost as f64);
        of("packets_missed_away", "packets", &[], |round| round.missed_away as f64);
        of("worker_kept_from_running_ms", "ms", &[], |round| round.kept_from_running * 1e3);
        if readers > 0 {
            of("answers_per_second", "1/s", &[], |round| round.answers);
            of("answers_refused", "answers", &[], |round| round.refused as f64);
        }
    }
    let [without, with] = rounds;
    let ratios: Vec<f64> =
        with.iter().zip(without).map(|(with, without)| with.established / without.established).collect();
    let params: Vec<_> =
        params(config.readers).into_iter().chain([("request", "establish".into())]).collect();
    report.results.push(Measured::of("ratio", "to no readers", &params, &ratios));
}

/// What came of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Sessions established a second.
    established: f64,
    /// Packets forwarded a second.
    forwarded: f64,
    /// Packets, while the worker ran.
    lost: u64,
    /// Packets, while it did not.
    missed_away: u64,
    /// For so many seconds, kernel and host had others run where the worker could have.
    kept_from_running: f64,
    /// A second.
    answers: f64,
    refused: u64,
}

/// Where threads run, until it is dropped.
struct Place {
    all: Vec<usize>,
    /// The worker's core, which no other thread uses; `None`: there is only one.
    worker: Option<usize>,
}

impl Place {
    fn take() -> std::io::Result<Self> {
        let all = available_cores();
        let worker = all.last().copied().filter(|_| all.len() > 1);
        if worker.is_some() {
            // Threads that are started from here on inherit it; the worker goes where the configuration says.
            pin_to_any(all.split_last().map_or(&[], |(_, others)| others))?;
        }
        Ok(Self { all, worker })
    }

    fn said(&self) -> String {
        let others = self.all.len() - 1;
        self.worker.map_or_else(
            || "shares the only core with all other threads".into(),
            |core| format!("has core {core} to itself, all other threads share {others}"),
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It could before.
        let _ = pin_to_any(&self.all);
    }
}

/// A UPF that forwards, and its SMF.
struct Bench {
    rig: Rig,
    smf: Smf,
    /// N3, N6.
    traffic: [Traffic; 2],
    socket: PathBuf,
    /// Sessions that readers ask about.
    asked: Vec<SessionFacts>,
    /// Packets a second that the worker can take.
    capacity: f64,
    /// The worker's.
    core: Option<usize>,
}

impl Bench {
    fn start(
        config: &ReadersConfig,
        kept: u32,
        core: Option<usize>,
        clock: Tsc,
        progress: &mut dyn Progress,
    ) -> Result<Self, ReadersError> {
        let traffic = [Traffic::new(clock), Traffic::new(clock)];
        let [n3, n6] = &traffic;
        let ports = [
            SteadyPort::new("n3", rig::N3_MAC, rig::MTU, n3),
            SteadyPort::new("n6", rig::N6_MAC, rig::MTU, n6),
        ];
        let socket = std::env::temp_dir().join(format!("millrace-bench-{}/ctl.sock", std::process::id()));
        let network = rig::network(GNBS);
        let more = configuration(&network, &socket, core);
        let rig = Rig::with_socket(kept.saturating_add(config.requests), &more, ports)?;
        let mut smf = Smf::bind(SmfConfig {
            gnbs: network.gnbs.iter().map(|gnb| gnb.address).collect(),
            upf_n3: IpAddr::V4(rig::UPF_N3),
            shape: Shape { gnb_at_once: true, mbr_kbps: Some((100_000, 100_000)), ..Shape::default() },
            window: config.window,
            ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), rig.n4)
        })?;
        smf.associate()?;
        progress.tell(&format!("{kept} sessions: establishing"));
        clean(&smf.establish_while(kept, &mut |done| {
            progress.part(done, kept.into());
            ControlFlow::Continue(())
        })?)?;
        progress.tell(&format!("{kept} sessions: what the worker can take"));
        let mut facts = smf.facts();
        path::shuffle(&mut facts);
        n3.set_stream(stream(&network, &facts, true)?);
        n6.set_stream(stream(&network, &facts, false)?);
        let asked = facts.into_iter().take(usize::from(config.readers).max(1)).collect();
        let mut bench = Self { rig, smf, traffic, socket, asked, capacity: 0.0, core };
        bench.load(kept)?;
        Ok(bench)
    }

    /// Finds out how much the worker can take, and lets a part of that come.
    fn load(&mut self, kept: u32) -> Result<(), ReadersError> {
        self.traffic.iter().for_each(|traffic| traffic.set_rate(TOO_MANY));
        let begin = Instant::now();
        // A session's first packet opens its books.
        let taken = |traffic: &Traffic| traffic.came() - traffic.missed();
        while self.traffic.iter().any(|traffic| taken(traffic) < u64::from(kept)) && begin.elapsed() < WARM_UP
        {
            self.smf.serve(PAUSE)?;
        }
        let (begin, before) = (Instant::now(), self.taken());
        self.smf.serve(SATURATED)?;
        self.capacity = (self.taken() - before) as f64 / begin.elapsed().as_secs_f64();
        if self.capacity <= 0.0 {
            return Err(ReadersError::Nothing);
        }
        let each = self.capacity * LOAD / self.traffic.len() as f64;
        self.traffic.iter().for_each(|traffic| traffic.set_rate(each));
        Ok(self.smf.serve(PAUSE)?)
    }

    /// Packets that the worker took.
    fn taken(&self) -> u64 {
        self.traffic.iter().map(|traffic| traffic.came() - traffic.missed()).sum()
    }

    /// Packets that were missed or dropped while the worker ran, and those that were missed while it was kept from that.
    fn lost(&self) -> Result<(u64, u64), ReadersError> {
        let dropped: u64 =
            self.rig.backend.reports()?.iter().map(|report| report.counters.dropped_total()).sum();
        let away: u64 = self.traffic.iter().map(Traffic::missed_away).sum();
        let missed: u64 = self.traffic.iter().map(Traffic::missed).sum();
        Ok((dropped + missed - away, away))
    }

    fn round(&mut self, readers: Option<&Readers>, requests: u32) -> Result<Round, ReadersError> {
        if let Some(readers) = readers {
            readers.open();
        }
        self.smf.serve(PAUSE)?;
        let told = |readers: Option<&Readers>| readers.map_or((0, 0), Readers::told);
        let (before_lost, first) = (self.lost()?, self.smf.numbers());
        let away = Away::begin([Whom::Named("worker-")].into_iter().chain(self.core.map(Whom::Core)));
        let (begin, taken, before) = (Instant::now(), self.taken(), told(readers));
        let batch = self.smf.establish(requests)?;
        let (after, seconds) = (told(readers), begin.elapsed().as_secs_f64());
        let forwarded = (self.taken() - taken) as f64 / seconds;
        let lost = self.lost()?;
        let kept_from_running = away.seconds().unwrap_or_default();
        clean(&batch)?;
        if let Some(readers) = readers {
            readers.close();
            while readers.are_asking() {
                self.smf.serve(PAUSE)?;
            }
            readers.failure().map_or(Ok(()), |why| Err(ReadersError::Unanswered(why)))?;
        }
        let new = first..self.smf.numbers();
        clean(&self.smf.run(Operation::Delete, new)?)?;
        Ok(Round {
            established: batch.requests_per_second,
            forwarded,
            lost: lost.0 - before_lost.0,
            missed_away: lost.1 - before_lost.1,
            kept_from_running,
            answers: (after.0 - before.0) as f64 / seconds,
            refused: after.1 - before.1,
        })
    }

    fn stop(self) -> Result<(), ReadersError> {
        self.traffic.iter().for_each(|traffic| traffic.set_rate(0.0));
        self.rig.stop()?;
        // Best effort: the socket is gone, and the directory was made for it.
        let _ = self.socket.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

/// What is configured beside the usual: nobody on these links answers ARP.
fn configuration(network: &Network, socket: &Path, core: Option<usize>) -> String {
    let workers = core.map_or_else(|| "count = 1".into(), |core| format!("cores = [{core}]"));
    let mut text = format!("[workers]\n{workers}\n[ctl]\nsocket = {:?}\n", socket.display().to_string());
    let gnbs = network.gnbs.iter().map(|gnb| ("n3", gnb.address, gnb.mac));
    let routers = network.dn.gateways.iter().map(|router| ("n6", *router, network.dn.mac));
    for (interface, address, mac) in gnbs.chain(routers) {
        // Writing to a string doesn't fail.
        let _ = write!(
            text,
            "[[neighbour]]\ninterface = \"{interface}\"\naddress = \"{address}\"\nmac = \"{mac}\"\n"
        );
    }
    text
}

/// Packets of these sessions in turn, over and over.
fn stream(network: &Network, sessions: &[SessionFacts], uplink: bool) -> Result<Stream, ReplayError> {
    // TEID, TTL to checksum of both IPv4 headers, the UE's address and the gNB's; downlink of the only header.
    let offsets: &[usize] = if uplink { &[46, 66, 70, 22, 26] } else { &[22, 30] };
    let mut template: Option<Vec<u8>> = None;
    let patch = |facts: &SessionFacts| {
        let packet = packet_of(network, facts, uplink);
        let mut words = [[0; 4]; WORDS];
        for (word, at) in words.iter_mut().zip(offsets) {
            *word = packet.get(*at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        }
        template.get_or_insert(packet);
        Patch { words, hash: 0 }
    };
    let patches: Vec<Patch> = sessions.iter().map(patch).collect();
    Stream::new(&template.unwrap_or_default(), offsets, patches)
}

fn packet_of(network: &Network, facts: &SessionFacts, uplink: bool) -> Vec<u8> {
    let ue = facts.ue_ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let server = network.dn.server_ipv4;
    let builder = PacketBuilder::new();
    if uplink {
        let gnb = network.gnbs.iter().find(|gnb| gnb.address == facts.gnb);
        let container = pdu_session::Uplink { qfi: facts.qfi, ..pdu_session::Uplink::default() };
        builder
            .ethernet(rig::N3_MAC, gnb.map(|gnb| gnb.mac).unwrap_or_default())
            .ip(facts.gnb, facts.upf_n3)
            .udp_without_checksum(packet::GTP_U_PORT, packet::GTP_U_PORT)
            .gtpu(facts.ul_teid)
            .pdu_session(&PduSession::Uplink(container))
            .ipv4(ue, server)
            .udp_without_checksum(40_000, path::SERVER_PORT)
            .build(&[0; path::PAYLOAD])
    } else {
        builder
            .ethernet(rig::N6_MAC, network.dn.mac)
            .ipv4(server, ue)
            .udp_without_checksum(path::SERVER_PORT, 40_000)
            .build(&[0; path::PAYLOAD])
    }
}

/// All questions that change nothing; those about one session are about this one.
pub fn questions(session: &SessionFacts) -> Vec<Request> {
    let (seid, teid) = (Some(SeidText(session.up_seid.0)), Some(TeidText(session.ul_teid.0)));
    let ue = session.ue_ipv4.map(IpAddr::V4);
    vec![
        api::Version {}.into(),
        api::Sessions::default().into(),
        api::Sessions { ue, ..api::Sessions::default() }.into(),
        api::Session { seid, ..api::Session::default() }.into(),
        api::Session { teid, ..api::Session::default() }.into(),
        api::Ports {}.into(),
        api::Drops {}.into(),
        // Takes a second, in which workers are watched.
        api::Workers {}.into(),
        api::Peers {}.into(),
        api::N4::default().into(),
        api::N4Log::default().into(),
        api::Flows::default().into(),
        api::Applications::default().into(),
        api::Slices {}.into(),
        api::Qos {}.into(),
        api::Scale::default().into(),
        api::Mirror::List.into(),
        api::Nat {}.into(),
        api::Offload::default().into(),
        api::Lookups::default().into(),
        // Likewise.
        api::Stages {}.into(),
        api::Routes {}.into(),
        api::Neighbours {}.into(),
        api::Gnbs {}.into(),
        api::Pools {}.into(),
        api::Pfds::default().into(),
        api::Config {}.into(),
    ]
}

/// Asks a question, and forgets the answer.
struct Ask<'a>(&'a mut CtlClient);

impl Visit for Ask<'_> {
    type Output = Result<(), CtlClientError>;

    fn visit<Q: Question>(self, question: &Q) -> Self::Output {
        self.0.ask(question).map(|_| ())
    }
}

/// What readers and those who watch them share.
#[derive(Default)]
struct Desk {
    open: AtomicBool,
    ended: AtomicBool,
    /// Those who are not waiting until it opens.
    asking: AtomicUsize,
    answers: AtomicU64,
    /// Answers that there is none: the UPF is too busy.
    refused: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// Those who ask.
struct Readers {
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Connects as many clients, which wait until they may ask.
    fn start(socket: &Path, readers: u16, sessions: &[SessionFacts]) -> Result<Self, ReadersError> {
        let desk = Arc::<Desk>::default();
        let mut threads = Vec::with_capacity(usize::from(readers));
        for (number, session) in (0..usize::from(readers)).zip(sessions.iter().cycle()) {
            let mut questions = questions(session);
            // They don't march in step.
            let first = number % questions.len();
            questions.rotate_left(first);
            let (desk, socket) = (Arc::clone(&desk), socket.to_owned());
            let read = move || desk.read(&socket, &questions);
            threads.push(std::thread::Builder::new().name(format!("reader-{number}")).spawn(read)?);
        }
        Ok(Self { desk, threads })
    }

    fn open(&self) {
        self.desk.asking.store(self.threads.len(), Ordering::Relaxed);
        self.desk.open.store(true, Ordering::Release);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }

    fn close(&self) {
        self.desk.open.store(false, Ordering::Relaxed);
    }

    fn are_asking(&self) -> bool {
        self.desk.asking.load(Ordering::Relaxed) > 0
    }

    /// Answers so far, and questions that were refused.
    fn told(&self) -> (u64, u64) {
        (self.desk.answers.load(Ordering::Relaxed), self.desk.refused.load(Ordering::Relaxed))
    }

    fn failure(&self) -> Option<String> {
        self.desk.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(self) {
        self.desk.ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.thread().unpark();
            // A panic has been reported by its hook.
            let _ = thread.join();
        }
    }
}

impl Desk {
    /// Asks whenever it is open. A connection is made for each opening: between them it could be idle for longer than the UPF allows.
    fn read(&self, socket: &Path, questions: &[Request]) {
        // Of this thread alone, on Linux. What has more priority measures less well, and that is all.
        let own = rustix::process::getpriority_process(None).unwrap_or_default();
        let _ = rustix::process::setpriority_process(None, own + NICE);
        let mut questions = questions.iter().cycle();
        while !self.ended.load(Ordering::Relaxed) {
            if !self.open.load(Ordering::Acquire) {
                std::thread::park();
                continue;
            }
            if let Err(error) = self.ask_while_open(socket, &mut questions) {
                self.failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert_with(|| error.to_string());
                self.open.store(false, Ordering::Relaxed);
            }
            self.asking.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn ask_while_open<'a>(
        &self,
        socket: &Path,
        questions: &mut impl Iterator<Item = &'a Request>,
    ) -> Result<(), CtlClientError> {
        let mut client = CtlClient::connect(socket, PATIENCE)?;
        while self.open.load(Ordering::Relaxed)
            && let Some(question) = questions.next()
        {
            match question.visit(Ask(&mut client)) {
                Ok(()) => self.answers.fetch_add(1, Ordering::Relaxed),
                Err(CtlClientError::Refused(CtlError { code: ErrorCode::Unavailable, .. })) => {
                    self.refused.fetch_add(1, Ordering::Relaxed)
                }
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;
    use api::Each;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Names(BTreeSet<&'static str>);

    impl Each for Names {
        fn each<Q: Question>(&mut self) {
            self.0.insert(Q::NAME);
        }
    }

    struct Name;

    impl Visit for Name {
        type Output = &'static str;

        fn visit<Q: Question>(self, _: &Q) -> &'static str {
            Q::NAME
        }
    }

    #[test]
    fn readers_ask_all_questions_that_change_nothing() {
        let mut all = Names::default();
        Request::each(&mut all);
        let network = rig::network(1);
        let facts = SessionFacts {
            cp_seid: pfcp::Seid(1),
            up_seid: pfcp::Seid(2),
            upf_n3: rig::UPF_N3.into(),
            ul_teid: packet::Teid(3),
            gnb: network.gnbs[0].address,
            dl_teid: packet::Teid(4),
            qfi: packet::Qfi::from_wire(9),
            ue_ipv4: Some([10, 0, 0, 1].into()),
            ue_ipv6: None,
        };
        let mut asked: BTreeSet<_> = questions(&facts).iter().map(|question| question.visit(Name)).collect();
        asked.extend(["stop", "dump", "flow-marks"]);
        assert_eq!(asked, all.0);
    }

    #[test]
    fn readers_are_answered_until_they_may_not_ask() {
        let _alone = crate::crew::alone();
        let config = ReadersConfig { kept: vec![10], readers: 3, requests: 10, pairs: 1, window: 8 };
        let mut bench = Bench::start(&config, 10, None, Tsc::process(), &mut Silent).unwrap();
        let readers = Readers::start(&bench.socket, 3, &bench.asked).unwrap();
        assert_eq!((readers.told(), readers.are_asking()), ((0, 0), false));
        readers.open();
        // All of them, each at least once.
        while readers.told().0 < 3 * 25 && readers.failure().is_none() {
            bench.smf.serve(PAUSE).unwrap();
        }
        readers.close();
        while readers.are_asking() {
            bench.smf.serve(PAUSE).unwrap();
        }
        assert_eq!(readers.failure(), None);
        let told = readers.told();
        bench.smf.serve(PAUSE).unwrap();
        assert_eq!(readers.told(), told);
        readers.end();
        bench.stop().unwrap();
    }

    /// Whatever a build for tests can do: figures are of what happened, and no packet is lost by a session that isn't there.
    #[test]
    fn rounds_with_and_without_readers() {
        let _alone = crate::crew::alone();
        let config = ReadersConfig { kept: vec![200], readers: 3, requests: 50, pairs: 1, window: 8 };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        let of = |name, readers: u64| report.median(name, &[("readers", readers.into())]).unwrap();
        for readers in [0, 3] {
            assert!(of("requests_per_second", readers) > 0.0 && of("packets_per_second", readers) > 0.0);
        }
        let ratio = of("requests_per_second", 3) / of("requests_per_second", 0);
        assert!((of("ratio", 3) - ratio).abs() < 1e-9);
    }
}
