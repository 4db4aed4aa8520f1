//! What comes, as a file that can be replayed.
//!
//! There are two kinds of traces, both text. Empty lines and what follows a `#` say nothing.
//!
//! - **Rates**: `SECOND RATE` in each line, seconds counted from zero and rising. A rate is packets a second, and holds until the next line's second.
//! - **Packets**: a first line `micros,kind,flow,octets` and then these of a packet in each: when it comes, in microseconds from the begin and with up to three digits behind the
//!   point; of which kind of the [packet table](super::packet) it is, from one; its flow; its octets. Times never fall.
//!
//! What is written is read again as it was, to the nanosecond. A file that says anything else is refused with its line.

use super::core::Source as _;
use super::packet::{FlowId, KindId, MOST_KINDS, MOST_OCTETS, Packet};
use super::traffic::{self, Chance, Load, Traffic};
use std::fmt::Write as _;
use std::sync::Arc;
use tables::Nanos;

/// Octets of a file, at most.
pub const MOST_BYTES: usize = 256 << 20;
/// Packets of a trace, at most.
pub const MOST_PACKETS: usize = 8_000_000;
/// Seconds of a trace, at most: a day.
pub const MOST_SECONDS: u32 = 86_400;
/// Packets a second, at most.
pub const MOST_RATE: u32 = 10_000_000;
/// What a trace of packets begins with.
pub const HEADER: &str = "micros,kind,flow,octets";

/// A packet that will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Nanos,
    /// Of which kind.
    pub kind: KindId,
    /// In which flow.
    pub flow: FlowId,
    /// How large.
    pub octets: u32,
}

/// What comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// Packets a second, second by second.
    Rates(Vec<u32>),
    /// Each packet.
    Packets(Arc<[Arrival]>),
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is nothing in it.
    #[error(
        "the trace is empty: `SECOND RATE` in each line belongs here, or {HEADER:?} and a packet in each"
    )]
    Empty,
    /// It is too large.
    #[error("a trace has {MOST_BYTES} octets at most")]
    TooLarge,
    /// A line says something else.
    #[error("line {line} of the trace: {why}")]
    Line {
        /// Its number, from one.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A packet of a kind that the packet table doesn't have.
    #[error("packet {packet} of the trace is of kind {kind}, and the packet table has {kinds}")]
    Kind {
        /// Its number, from one.
        packet: usize,
        /// Its kind, from one.
        kind: usize,
        /// How many there are.
        kinds: usize,
    },
}

impl Trace {
    /// From text.
    pub fn read(text: &str) -> Result<Self, TraceError> {
        if text.len() > MOST_BYTES {
            return Err(TraceError::TooLarge);
        }
        let said = |(line, number): (&'_ str, usize)| {
            let line = line.split('#').next().unwrap_or("").trim();
            (!line.is_empty()).then(|| (line.to_owned(), number))
        };
        let mut lines = text.lines().zip(1..).filter_map(said).peekable();
        let Some((first, _)) = lines.peek() else { return Err(TraceError::Empty) };
        if first == HEADER {
            lines.next();
            return packets(lines);
        }
        rates(lines)
    }

    /// As text that [`Self::read`] reads.
    pub fn text(&self) -> String {
        // Writing to a string can't fail.
        match self {
            Self::Rates(rates) => {
                let mut text = String::from("# second, packets a second\n");
                for (second, rate) in rates.iter().enumerate() {
                    let _ = writeln!(text, "{second} {rate}");
                }
                text
            }
            Self::Packets(packets) => {
                let mut text = format!("{HEADER}\n");
                for Arrival { at, kind, flow, octets } in &**packets {
                    let (micros, nanos) = (at.0 / 1_000, at.0 % 1_000);
                    let _ = writeln!(text, "{micros}.{nanos:03},{},{},{octets}", kind.0 + 1, flow.0);
                }
                text
            }
        }
    }

    /// Rates by chance, from a part of a rate up to it, anew each second.
    pub fn random(seed: u64, seconds: u32, least: f64, most: f64) -> Self {
        let mut chance = Chance::new(seed);
        Self::Rates((0..seconds).map(|_| (least + (most - least) * chance.part()) as u32).collect())
    }

    /// What would come in so many seconds; nothing, if as much comes as is taken.
    pub fn record(settings: &traffic::Settings, seconds: u32) -> Option<Self> {
        if settings.load == Load::Unbounded {
            return None;
        }
        // The ring is emptied at once, so nothing is lost in it.
        let until = Nanos(u64::from(seconds) * Nanos::SECOND);
        let mut traffic = Traffic::new(traffic::Settings { ring: 1 << 10, ..settings.clone() }, until);
        let (mut packets, mut all) = (Vec::new(), Vec::new());
        loop {
            let next = traffic.next_event();
            if next == super::NEVER || all.len() >= MOST_PACKETS {
                break;
            }
            traffic.go_on(next);
            traffic.receive(1 << 10, &mut packets);
            all.extend(packets.drain(..).map(|Packet { kind, flow, octets, arrived, .. }| Arrival {
                at: arrived,
                kind,
                flow,
                octets,
            }));
        }
        Some(Self::Packets(all.into()))
    }

    /// What a test is run with.
    pub fn load(&self) -> Load {
        match self {
            Self::Rates(rates) => Load::Rates(rates.clone()),
            Self::Packets(packets) => Load::Packets(Arc::clone(packets)),
        }
    }

    /// Seconds in which something comes.
    pub fn seconds(&self) -> u32 {
        match self {
            Self::Rates(rates) => rates.len() as u32,
            Self::Packets(packets) => packets.last().map_or(0, |last| (last.at.0 / Nanos::SECOND + 1) as u32),
        }
    }

    /// Whether each packet is of one of so many kinds.
    pub fn check(&self, kinds: usize) -> Result<(), TraceError> {
        let Self::Packets(packets) = self else { return Ok(()) };
        let foreign = packets.iter().position(|packet| usize::from(packet.kind.0) >= kinds);
        let Some(at) = foreign else { return Ok(()) };
        let kind = packets.get(at).map_or(0, |packet| usize::from(packet.kind.0) + 1);
        Err(TraceError::Kind { packet: at + 1, kind, kinds })
    }
}

fn rates(lines: impl Iterator<Item = (String, usize)>) -> Result<Trace, TraceError> {
    let mut rates: Vec<u32> = Vec::new();
    for (text, line) in lines {
        let wrong = |why| TraceError::Line { line, why };
        let mut parts = text.split_whitespace();
        let (Some(second), Some(rate), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong("`SECOND RATE` belongs here"));
        };
        let second: u32 = second.parse().map_err(|_| wrong("a second is a whole number"))?;
        let rate: u32 = rate.parse().map_err(|_| wrong("a rate is a whole number of packets a second"))?;
        if second >= MOST_SECONDS {
            return Err(wrong("a trace has a day at most"));
        }
        if rate > MOST_RATE {
            return Err(wrong("a rate is 10,000,000 at most"));
        }
        match rates.last() {
            None if second > 0 => return Err(wrong("the first second is 0")),
            Some(_) if (second as usize) < rates.len() => {
                return Err(wrong("seconds rise from line to line"));
            }
            last => {
                let last = last.copied().unwrap_or(0);
                rates.resize(second as usize, last);
                rates.push(rate);
            }
        }
    }
    Ok(Trace::Rates(rates))
}

fn packets(lines: impl Iterator<Item = (String, usize)>) -> Result<Trace, TraceError> {
    let mut packets: Vec<Arrival> = Vec::new();
    for (text, line) in lines {
        let wrong = |why| TraceError::Line { line, why };
        if packets.len() >= MOST_PACKETS {
            return Err(wrong("a trace has 8,000,000 packets at most"));
        }
        let mut parts = text.split(',').map(str::trim);
        let mut part = || parts.next().ok_or(wrong("`micros,kind,flow,octets` of a packet belongs here"));
        let (micros, kind, flow, octets) = (part()?, part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(wrong("there is more than micros, kind, flow and octets"));
        }
        let at =
            nanos(micros).ok_or(wrong("a time is microseconds, with up to three digits behind the point"))?;
        if at.0 >= u64::from(MOST_SECONDS) * Nanos::SECOND {
            return Err(wrong("a trace has a day at most"));
        }
        let kind: usize = kind.parse().map_err(|_| wrong("a kind is a whole number"))?;
        if !(1..=MOST_KINDS).contains(&kind) {
            return Err(wrong("a kind is 1 to 16"));
        }
        let flow = flow.parse().map_err(|_| wrong("a flow is a whole number of 32 bits"))?;
        let octets: u32 = octets.parse().map_err(|_| wrong("octets are a whole number"))?;
        if !(1..=MOST_OCTETS).contains(&octets) {
            return Err(wrong("a packet has 1 to 9000 octets"));
        }
        if packets.last().is_some_and(|last| at < last.at) {
            return Err(wrong("it comes before the packet of the line above"));
        }
        packets.push(Arrival { at, kind: KindId((kind - 1) as u8), flow: FlowId(flow), octets });
    }
    if packets.is_empty() { Err(TraceError::Empty) } else { Ok(Trace::Packets(packets.into())) }
}

/// `12.5` microseconds as nanoseconds.
fn nanos(text: &str) -> Option<Nanos> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if part.len() > 3 || !is_number(part) || !is_number(whole) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    Some(Nanos(whole.checked_mul(1_000)?.checked_add(part)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::packet::Chain;
    use super::super::run::{Settings, simulate};
    use super::super::traffic::Test;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let rates = Trace::Rates(vec![3_046, 0, 12]);
        assert_eq!(Trace::read(&rates.text()), Ok(rates));
        let packet = |at, kind, flow, octets| Arrival {
            at: Nanos(at),
            kind: KindId(kind),
            flow: FlowId(flow),
            octets,
        };
        let packets = Trace::Packets([packet(1, 0, 0, 243), packet(1_234_567, 4, u32::MAX, 9_000)].into());
        assert_eq!(packets.text(), "micros,kind,flow,octets\n0.001,1,0,243\n1234.567,5,4294967295,9000\n");
        assert_eq!(Trace::read(&packets.text()), Ok(packets));
    }

    #[test]
    fn a_rate_holds_until_the_next_and_comments_say_nothing() {
        let trace = Trace::read("# a comment\n\n 0 10 # ten\n3 20\r\n").unwrap();
        assert_eq!((trace.clone(), trace.seconds()), (Trace::Rates(vec![10, 10, 10, 20]), 4));
        let trace = Trace::read("micros,kind,flow,octets\n5,1,2,3\n1000000.5,2,2,3\n").unwrap();
        assert_eq!(trace.seconds(), 2);
        assert_eq!(trace.check(2), Ok(()));
        let error = trace.check(1).unwrap_err().to_string();
        assert_eq!(error, "packet 2 of the trace is of kind 2, and the packet table has 1");
    }

    #[test]
    fn hostile_lines_are_refused_with_their_number() {
        let packet = |line: &str| format!("{HEADER}\n0,1,0,243\n# x\n{line}\n");
        for (text, line, why) in [
            ("0 5\n1\n".to_owned(), 2, "belongs here"),
            ("0 5 5\n".to_owned(), 1, "belongs here"),
            ("0 -5\n".to_owned(), 1, "a rate is a whole number"),
            ("1 5\n".to_owned(), 1, "the first second is 0"),
            ("0 5\n2 5\n1 5\n".to_owned(), 3, "seconds rise"),
            ("0 5\n0 5\n".to_owned(), 2, "seconds rise"),
            ("0 5\n4000000000 5\n".to_owned(), 2, "a day"),
            ("0 10000001\n".to_owned(), 1, "10,000,000"),
            (packet("1,1,0"), 4, "belongs here"),
            (packet("1,1,0,243,1"), 4, "more than"),
            (packet("-1,1,0,243"), 4, "microseconds"),
            (packet("1.0001,1,0,243"), 4, "microseconds"),
            (packet("1.+1,1,0,243"), 4, "microseconds"),
            (packet("99999999999999999999,1,0,243"), 4, "microseconds"),
            (packet("18446744073709551,1,0,243"), 4, "a day"),
            (packet("1,0,0,243"), 4, "1 to 16"),
            (packet("1,17,0,243"), 4, "1 to 16"),
            (packet("1,1,4294967296,243"), 4, "32 bits"),
            (packet("1,1,0,0"), 4, "1 to 9000"),
            (packet("1,1,0,9001"), 4, "1 to 9000"),
            (format!("{HEADER}\n2,1,0,9\n1,1,0,9\n"), 3, "before"),
        ] {
            match Trace::read(&text).unwrap_err() {
                TraceError::Line { line: at, why: said } => {
                    assert!(at == line && said.contains(why), "{text:?}: line {at}: {said}");
                }
                other => panic!("{text:?}: {other}"),
            }
        }
        for empty in ["", "\n# nothing\n", "micros,kind,flow,octets\n"] {
            assert_eq!(Trace::read(empty), Err(TraceError::Empty));
        }
    }

    #[test]
    fn a_recorded_test_is_the_test() {
        let settings = Settings { seconds: 2, ..Settings::thesis(Test::Low, Chain::Once) };
        let trace = Trace::record(&settings.traffic, 2).unwrap();
        let again = Trace::read(&trace.text()).unwrap();
        let mut replayed = settings.clone();
        replayed.traffic.load = again.load();
        assert_eq!(simulate("round-robin", &replayed).unwrap(), simulate("round-robin", &settings).unwrap());
        assert_eq!(Trace::record(&traffic::Settings::thesis(Test::Stress), 2), None);
    }

    #[test]
    fn chance_stays_within_its_bounds() {
        let Trace::Rates(rates) = Trace::random(7, 300, 100.0, 1_000.0) else { panic!() };
        assert!(rates.iter().all(|rate| (100..=1_000).contains(rate)) && rates.len() == 300);
        assert!(rates.iter().any(|&rate| rate < 300) && rates.iter().any(|&rate| rate > 800));
        assert_ne!(Trace::random(8, 300, 100.0, 1_000.0), Trace::Rates(rates));
    }

    proptest! {
        /// Whatever a file says is a trace that can be written and read, or an error.
        #[test]
        fn any_text_is_read_or_refused(lines in prop::collection::vec("[0-9., #a-z-]{0,24}", 0..12), with_header: bool) {
            let head = if with_header { "micros,kind,flow,octets\n" } else { "" };
            if let Ok(trace) = Trace::read(&format!("{head}{}", lines.join("\n"))) {
                prop_assert_eq!(Trace::read(&trace.text()), Ok(trace));
            }
        }
    }
}
