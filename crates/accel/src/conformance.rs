//! Does a device behave as [`Device`] says? A body for the tests of all devices, which needs to know nothing of them.

use crate::copies::TableId;
use crate::cpu::Inline;
use crate::device::{Completion, Device, Rejected};
use crate::task::{Batch, Decoding, HASHED, Hashes, Kind, Lookup, Packet, Task};
use crate::{Clock, Refusal};
use ran::ldpc::{BaseGraph, Code, Effort, Encoder};
use ran::nea2::{Bearer, Count, Direction};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tables::Nanos;
use tables::classify::{Flows4, Tuple4};
use tables::image::{self, Changes};

/// Time after which a device that has not answered is taken for one that doesn't: no machine is that slow.
const PATIENCE: u64 = 30_000_000_000;

/// What was done, so that a test can see that something was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Batches that came back done, and right.
    pub done: usize,
    /// Batches that came back because the device was given up.
    pub given_back: usize,
}

/// Where random numbers come from.
pub type Random<'a> = &'a mut dyn FnMut() -> u64;

/// The table of random look-ups.
pub const TABLE: TableId = TableId(9);

/// Flows in it: as many keys again are not.
const FLOWS: u32 = 1000;

fn flow(number: u32) -> Tuple4 {
    let address = |base: u32| Ipv4Addr::from_bits(base + number);
    Tuple4::new(address(0x0a00_0000), address(0xc000_0200), number as u8, number as u16, 2152)
}

/// The table of random look-ups, full.
pub fn flows() -> Result<Flows4, String> {
    let mut flows = Flows4::new(5, FLOWS).map_err(text)?;
    for number in 0..FLOWS {
        flows.insert(flow(number), number * 3).map_err(text)?;
    }
    Ok(flows)
}

/// Has a device copy that table.
pub fn follow(device: &mut dyn Device) -> Result<(), String> {
    device.follow(TABLE, &flows()?, &Changes { generation: 1, all: true, lines: Vec::new() }).map_err(text)
}

/// A batch of `kind`, with `items` of random content and shape.
pub fn batch(kind: Kind, ticket: u64, items: usize, random: Random) -> Result<Batch, String> {
    let code = some_code(random);
    let task = match kind {
        Kind::Hash => Task::Hash(Hashes::new(random() as u8 % 4 + 1).map_err(text)?),
        Kind::Nea2 => Task::Nea2,
        Kind::LdpcEncode => Task::LdpcEncode(code),
        Kind::Lookup => Task::Lookup(Lookup { table: TABLE, kind: image::Kind::Flow4 }),
        Kind::LdpcDecode => {
            let received = code.coded_bits() * (random() as usize % 8 + 1) / 8;
            let fillers = (code.info_bits() - code.punctured_bits()) * (random() as usize % 4) / 8;
            let effort =
                Effort { iterations: random() as usize % 6 + 1, early_stop: random().is_multiple_of(2) };
            Task::LdpcDecode(Decoding::new(code, received, fillers, effort).map_err(text)?)
        }
    };
    batch_of(task, ticket, items, random)
}

fn some_code(random: Random) -> Code {
    // All sizes have their turn, the small ones more often, for the sake of time.
    let graph = if random().is_multiple_of(2) { BaseGraph::One } else { BaseGraph::Two };
    let wanted = 1 << (random() % 9);
    let z = wanted + random() as usize % wanted;
    (z..=384).chain(2..z).find_map(|z| Code::new(graph, z).ok()).unwrap_or_else(|| some_code(random))
}

/// A batch of `task`, with `items` of random content.
pub fn batch_of(task: Task, ticket: u64, items: usize, random: Random) -> Result<Batch, String> {
    let mut batch = Batch::new(ticket, task);
    for _ in 0..items {
        match task {
            Task::Hash(_) => batch.push(&octets(HASHED, random)),
            Task::Nea2 => {
                let length = match random() % 8 {
                    0 => random() as usize % 4,
                    1 => 1458,
                    _ => random() as usize % 200,
                };
                batch.push_packet(packet(random)?, &octets(length, random))
            }
            Task::LdpcEncode(code) => batch.push(&info(code, random)),
            Task::Lookup(_) => batch.push_key(&flow(random() as u32 % (2 * FLOWS)).words()),
            Task::LdpcDecode(decoding) => batch.push_llrs(&llrs(&decoding, random)?),
        }
        .map_err(text)?;
    }
    Ok(batch)
}

fn packet(random: Random) -> Result<Packet, String> {
    let mut key = [0; 16];
    key.copy_from_slice(&octets(16, random));
    Ok(Packet {
        key,
        count: Count(random() as u32),
        bearer: Bearer::new(random() as u8 % 32).map_err(text)?,
        direction: if random().is_multiple_of(2) { Direction::Uplink } else { Direction::Downlink },
    })
}

fn octets(length: usize, random: Random) -> Vec<u8> {
    (0..length).map(|_| random() as u8).collect()
}

fn info(code: Code, random: Random) -> Vec<u8> {
    octets(code.info_bits().div_ceil(8), random)
}

/// A codeword as it may arrive, with more or less noise; at times nothing but noise.
fn llrs(decoding: &Decoding, random: Random) -> Result<Vec<i8>, String> {
    let code = decoding.code();
    let mut info = info(code, random);
    for at in code.info_bits() - decoding.fillers()..info.len() * 8 {
        info[at / 8] &= !(0x80 >> (at % 8));
    }
    let mut coded = vec![0; code.coded_bits().div_ceil(8)];
    Encoder::new().encode(code, &info, &mut coded).map_err(text)?;
    let strength = [0, 3, 12, 100][random() as usize % 4];
    let noise = [1, 6, 20, 127][random() as usize % 4];
    let llr = |at: usize, random: Random| {
        let sent = if coded[at / 8] >> (7 - at % 8) & 1 == 1 { -strength } else { strength };
        let heard = sent + (random() % (2 * noise + 1)).cast_signed() - noise.cast_signed();
        heard.clamp(-128, 127) as i8
    };
    Ok((0..decoding.received()).map(|at| llr(at, random)).collect())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Whether `what`, in words if not.
fn ensure(what: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if what { Ok(()) } else { Err(words()) }
}

/// What batches are to become, by ticket.
#[derive(Default)]
struct Expected {
    second: Option<Inline<fn() -> Nanos>>,
    /// Whether that has the table.
    follows: bool,
    batches: BTreeMap<u64, (Batch, Batch)>,
}

impl Expected {
    fn note(&mut self, batch: &Batch) -> Result<(), String> {
        let second = self.second.get_or_insert_with(|| Inline::new(1, Nanos::default));
        if batch.task().kind() == Kind::Lookup && !self.follows {
            follow(second)?;
            self.follows = true;
        }
        second.submit(batch.clone(), Nanos(0)).map_err(|rejected| rejected.why.to_string())?;
        let mut ended = Vec::new();
        second.poll(Nanos(0), &mut ended);
        let done = ended.pop().ok_or("nothing to compare with")?;
        done.outcome.map_err(text)?;
        self.batches.insert(batch.ticket, (batch.clone(), done.batch));
        Ok(())
    }

    /// A batch is back: it is a known one that wasn't back before, and is right.
    fn take(&mut self, completion: &Completion) -> Result<(), String> {
        let ticket = completion.batch.ticket;
        let (before, done) =
            self.batches.remove(&ticket).ok_or_else(|| format!("batch {ticket} came back a second time"))?;
        ensure(
            completion.batch.items() == before.items() && completion.batch.data() == before.data(),
            || format!("the input of batch {ticket} has changed"),
        )?;
        if completion.outcome.is_ok() {
            ensure(completion.steady, || format!("batch {ticket} isn't steady, though nobody writes"))?;
            let wrong =
                completion.batch.output().iter().zip(done.output()).position(|(found, right)| found != right);
            ensure(wrong.is_none(), || {
                format!("batch {ticket}, {:?}: octet {wrong:?} of the output", before.task())
            })?;
            let times = completion.times;
            ensure(times.submitted <= times.started && times.started <= times.ended, || {
                format!("batch {ticket}: {times:?}")
            })?;
        }
        Ok(())
    }
}

/// Runs the body. `clock` is that by which the device goes.
pub fn run(device: &mut dyn Device, clock: &dyn Clock, random: Random) -> Result<Report, String> {
    let limits = device.limits();
    let mut report = Report::default();
    ensure(!limits.kinds.is_empty() && limits.in_flight > 0, || format!("it takes nothing: {limits:?}"))?;
    refuses(device, clock, random)?;

    if limits.kinds.contains(&Kind::Lookup) {
        follow(device)?;
        settle(device, clock, random)?;
    }

    // All kinds, of one item and of several, as many in flight as it takes.
    let mut expected = Expected::default();
    let mut ended = Vec::new();
    let mut ticket = 1000;
    for (round, kind) in (0..3).flat_map(|round| limits.kinds.iter().map(move |kind| (round, *kind))) {
        for items in [1, 2, 33].into_iter().filter(|items| *items <= limits.items) {
            ticket += 1;
            let mut batch = batch(kind, ticket, items, random)?;
            while device.accepts(&batch).is_err() {
                // Some random batches are larger than a small device takes: then one item of a smaller code.
                batch = self::batch(kind, ticket, 1, random)?;
            }
            expected.note(&batch)?;
            let since = clock.now();
            while let Err(Rejected { batch: back, why }) = device.submit(batch, clock.now()) {
                ensure(why == Refusal::Full, || format!("round {round}: {why}"))?;
                let (before, _) = expected.batches.get(&ticket).ok_or("a batch that nobody has submitted")?;
                ensure(*before == back, || "a batch was changed before it was refused".into())?;
                ensure(clock.now().since(since) < PATIENCE, || "it doesn't get on".into())?;
                collect(device, clock, &mut expected, &mut ended, &mut report)?;
                batch = back;
            }
        }
    }
    let since = clock.now();
    while device.in_flight() > 0 {
        ensure(clock.now().since(since) < PATIENCE, || {
            format!("{} batches don't come back", device.in_flight())
        })?;
        collect(device, clock, &mut expected, &mut ended, &mut report)?;
    }
    ensure(expected.batches.is_empty(), || format!("{} batches are lost", expected.batches.len()))?;
    ensure(device.poll(clock.now(), &mut ended) == 0, || "something came back that wasn't there".into())?;

    gives_back(device, clock, &mut report, random)?;
    Ok(report)
}

/// Looks up until the copy of the table has arrived.
fn settle(device: &mut dyn Device, clock: &dyn Clock, random: Random) -> Result<(), String> {
    let (since, mut ended) = (clock.now(), Vec::new());
    while !ended.pop().is_some_and(|completion: Completion| completion.steady) {
        ensure(clock.now().since(since) < PATIENCE, || "a table's copy doesn't arrive".into())?;
        let batch = batch(Kind::Lookup, 1, 1, random)?;
        device.submit(batch, clock.now()).map_err(|rejected| rejected.why.to_string())?;
        while device.poll(clock.now(), &mut ended) == 0 {
            ensure(clock.now().since(since) < PATIENCE, || "a look-up doesn't come back".into())?;
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// What it must not take.
fn refuses(device: &mut dyn Device, clock: &dyn Clock, random: Random) -> Result<(), String> {
    let limits = device.limits();
    let mut refused = |batch: Batch, right: &dyn Fn(&Refusal) -> bool| {
        let before = batch.clone();
        match device.submit(batch, clock.now()) {
            Err(Rejected { batch, why }) if right(&why) => {
                ensure(batch == before, || format!("{why}, and it is changed"))
            }
            other => Err(format!("it has not refused as it should: {other:?}")),
        }
    };
    refused(Batch::new(1, Task::Nea2), &|why| *why == Refusal::Empty)?;
    for kind in Kind::ALL.into_iter().filter(|kind| !limits.kinds.contains(kind)) {
        refused(batch(kind, 2, 1, random)?, &|why| *why == Refusal::Unsupported(kind))?;
    }
    // Not to be tried with devices that take as much as memory holds.
    if limits.items < 100_000 {
        let many = batch(limits.kinds[0], 3, limits.items + 1, random)?;
        refused(many, &|why| matches!(why, Refusal::TooLarge { .. }))?;
    }
    Ok(())
}

fn collect(
    device: &mut dyn Device,
    clock: &dyn Clock,
    expected: &mut Expected,
    ended: &mut Vec<Completion>,
    report: &mut Report,
) -> Result<(), String> {
    let found = device.poll(clock.now(), ended);
    ensure(found == ended.len(), || format!("{found} are said to have ended, {} have", ended.len()))?;
    for completion in ended.drain(..) {
        expected.take(&completion)?;
        completion.outcome.map_err(text)?;
        report.done += 1;
    }
    if found == 0 {
        std::thread::yield_now();
    }
    Ok(())
}

/// A device that is given up gives all back, once.
fn gives_back(
    device: &mut dyn Device,
    clock: &dyn Clock,
    report: &mut Report,
    random: Random,
) -> Result<(), String> {
    let (mut expected, mut ended) = (Expected::default(), Vec::new());
    let kind = device.limits().kinds[0];
    let mut taken = 0;
    for ticket in 0..device.limits().in_flight.min(16) as u64 {
        let batch = batch(kind, ticket, 1, random)?;
        if device.accepts(&batch).is_ok() && device.submit(batch.clone(), clock.now()).is_ok() {
            expected.note(&batch)?;
            taken += 1;
        }
    }
    device.abandon(clock.now(), &mut ended);
    ensure(ended.len() == taken, || format!("{taken} were in flight, {} came back", ended.len()))?;
    ensure(device.in_flight() == 0, || "given up, it still has something in flight".into())?;
    for completion in &ended {
        expected.take(completion)?;
    }
    report.given_back += taken;
    let since = clock.now();
    while let Err(failure) = device.revive(clock.now()) {
        // Whatever is behind it may need a moment to see that it is to go.
        ensure(clock.now().since(since) < PATIENCE, || format!("it isn't revived: {failure}"))?;
        std::thread::yield_now();
    }
    let batch = batch(kind, 77, 1, random)?;
    expected.note(&batch)?;
    device.submit(batch, clock.now()).map_err(|rejected| format!("revived: {}", rejected.why))?;
    let since = clock.now();
    while !expected.batches.is_empty() {
        ensure(clock.now().since(since) < PATIENCE, || "revived, it doesn't answer".into())?;
        collect(device, clock, &mut expected, &mut Vec::new(), report)?;
    }
    Ok(())
}
