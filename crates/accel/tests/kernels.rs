//! The kernels' headers, compiled for the host, against what the processor does. This proves what each thread does with its part; what only a GPU has (that
//! threads run at once, shared memory, barriers) it can't.

use crate::stand_in::build;
use accel::cpu::{Executor, Inline};
use accel::ring::layout::{DONE, LINE, NO_TASK};
use accel::ring::{Host, Order, Shape};
use accel::task::{Batch, Decoding, Hashes, Task};
use accel::{Device, Kind, conformance, plan::Plan};
use ran::ldpc::{Code, Effort};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tables::Nanos;

/// The program, or why there is none. It is compiled once for these sources, by whichever test needs it first.
pub fn twin() -> Result<&'static Path, &'static str> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref().map_err(String::as_str)
}

fn compile() -> Result<PathBuf, String> {
    build("twin", include_str!("twin.cpp"), &["-fsanitize=address,undefined", "-fno-sanitize-recover"])
}

/// What the program answers.
pub fn run(program: &Path, name: &str, input: &[&[u8]]) -> Vec<u8> {
    let mut child =
        Command::new(program).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.concat();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{name}: {}", output.status);
    output.stdout
}

pub fn numbers(numbers: &[usize]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}

/// The batch done by the program.
fn by_twin(program: &Path, batch: &Batch) -> Vec<u8> {
    let (items, data) = (batch.items(), batch.data());
    let blocks = |name: &str, plan: &Plan| {
        let words: Vec<u8> = plan.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let (item, answer) = (batch.task().item_octets(), batch.task().answer_octets());
        let lengths = numbers(&[plan.words().len(), batch.len(), item, answer]);
        run(program, name, &[&lengths, &words, items])
    };
    match batch.task() {
        Task::Hash(hashes) => {
            run(program, "hash", &[&numbers(&[batch.len(), usize::from(hashes.get())]), items])
        }
        Task::Nea2 => run(program, "nea2", &[&numbers(&[batch.len(), data.len(), 4]), items, data]),
        Task::LdpcEncode(code) => blocks("encode", &Plan::encode(*code)),
        Task::LdpcDecode(decoding) => blocks("decode", &Plan::decode(decoding)),
        // Of these there are more tests in `copies`.
        Task::Lookup(lookup) => {
            let flows = conformance::flows().unwrap();
            let (words, kind) = (crate::copies::words_of(&flows), lookup.kind as usize);
            crate::copies::by_twin(program, &words, kind, items)
        }
    }
}

fn holds(program: &Path, mut batch: Batch) {
    let found = by_twin(program, &batch);
    let mut device = Inline::new(1, || Nanos(0));
    conformance::follow(&mut device).unwrap();
    device.submit(batch, Nanos(0)).unwrap();
    let mut ended = Vec::new();
    device.poll(Nanos(0), &mut ended);
    ended[0].outcome.clone().unwrap();
    batch = ended.remove(0).batch;
    let wrong = found.iter().zip(batch.output()).position(|(found, right)| found != right);
    assert_eq!((found.len(), wrong), (batch.output().len(), None), "{:?}", batch.task());
}

#[test]
fn random_batches_of_all_kinds() {
    let program = match twin() {
        Ok(program) => program,
        Err(why) => return testing::skipped(why),
    };
    let mut random = SmallRng::seed_from_u64(11);
    let mut random = || random.next_u64();
    for kind in Kind::ALL {
        for (round, items) in [1, 2, 5, 33, 64].into_iter().cycle().take(15).enumerate() {
            let items = if kind == Kind::LdpcDecode { items.min(3) } else { items };
            holds(program, conformance::batch(kind, round as u64, items, &mut random).unwrap());
        }
    }
}

#[test]
fn all_codes_are_encoded_and_decoded_bit_for_bit() {
    let program = match twin() {
        Ok(program) => program,
        Err(why) => return testing::skipped(why),
    };
    let mut random = SmallRng::seed_from_u64(12);
    let mut random = || random.next_u64();
    for (at, code) in Code::all().enumerate() {
        holds(program, conformance::batch_of(Task::LdpcEncode(code), 1, 2, &mut random).unwrap());
        // Few received and many, none and many fillers, with and without an early end.
        let received = code.coded_bits() * (at % 7 + 1) / 7;
        let fillers = (code.info_bits() - code.punctured_bits()) * (at % 5) / 5;
        let effort = Effort { iterations: at % 4 + 1, early_stop: at % 2 == 0 };
        let task = Task::LdpcDecode(Decoding::new(code, received, fillers, effort).unwrap());
        holds(program, conformance::batch_of(task, 2, 2, &mut random).unwrap());
    }
}

#[test]
fn nothing_received_and_no_iterations_are_as_they_are() {
    let program = match twin() {
        Ok(program) => program,
        Err(why) => return testing::skipped(why),
    };
    let mut random = SmallRng::seed_from_u64(13);
    for (received, iterations) in [(0, 3), (40, 0)] {
        let code = Code::new(ran::ldpc::BaseGraph::Two, 2).unwrap();
        let effort = Effort { iterations, early_stop: true };
        let task = Task::LdpcDecode(Decoding::new(code, received, 0, effort).unwrap());
        holds(program, conformance::batch_of(task, 1, 3, &mut || random.next_u64()).unwrap());
    }
}

/// What a kernel reads is checked there, too: a descriptor that leads elsewhere ends nothing but its packet.
#[test]
fn a_packet_that_is_not_in_the_data_is_left_alone() {
    let program = match twin() {
        Ok(program) => program,
        Err(why) => return testing::skipped(why),
    };
    let mut random = SmallRng::seed_from_u64(14);
    let batch = conformance::batch_of(Task::Nea2, 1, 1, &mut || random.next_u64()).unwrap();
    let data = [7; 64];
    for (place, length) in [(0u32, 65u32), (64, 1), (8, 8), (u32::MAX - 15, 32), (16, u32::MAX)] {
        let mut items = batch.items().to_vec();
        items[24..28].copy_from_slice(&place.to_le_bytes());
        items[28..].copy_from_slice(&length.to_le_bytes());
        let output = run(program, "nea2", &[&numbers(&[1, data.len(), 4]), &items, &data]);
        assert_eq!(output, [0; 64], "{place} {length}");
    }
}

#[test]
fn a_ring_that_rust_has_filled_is_served() {
    let program = match twin() {
        Ok(program) => program,
        Err(why) => return testing::skipped(why),
    };
    let shape = Shape::new(5, 80_000, 70_000).unwrap();
    let memory: Arc<[AtomicU64]> = (0..shape.words()).map(|_| AtomicU64::new(0)).collect();
    let mut host = Host::new(Arc::clone(&memory), shape).unwrap();
    let mut random = SmallRng::seed_from_u64(15);
    let mut random = || random.next_u64();
    let batches = [
        conformance::batch_of(Task::Hash(Hashes::new(3).unwrap()), 1, 32, &mut random).unwrap(),
        conformance::batch_of(Task::Nea2, 2, 33, &mut random).unwrap(),
        conformance::batch_of(Task::Nea2, 3, 100, &mut random).unwrap(),
    ];
    let order = |task: u64, batch: &'static Batch| Order {
        task,
        items: batch.len() as u64,
        table: 0,
        octets: batch.items(),
        data: batch.data(),
        output: batch.output().len(),
    };
    let batches: &'static [Batch; 3] = Box::leak(Box::new(batches));
    assert!(host.ring(0, order(1 | 3 << 8, &batches[0])));
    assert!(host.ring(1, order(2, &batches[1])));
    assert!(host.ring(3, order(2, &batches[2])));
    // No such task, and one whose items are not there.
    assert!(host.ring(4, order(9, &batches[1])));
    let image: Vec<u8> = memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    let served = run(program, "ring", &[&image]);
    for (word, octets) in memory.iter().zip(served.as_chunks().0) {
        word.store(u64::from_le_bytes(*octets), Ordering::Relaxed);
    }
    for (slot, batch) in [(0, &batches[0]), (1, &batches[1]), (3, &batches[2])] {
        let mut right = batch.clone();
        Executor::new().execute(&mut right).unwrap();
        let mut output = vec![0; right.output().len()];
        let done = host.fetch(slot, &mut output).unwrap();
        assert_eq!((done.status, &output[..]), (DONE as u64, right.output()), "slot {slot}");
    }
    assert_eq!(host.fetch(4, &mut []).unwrap().status, NO_TASK as u64);
    assert_eq!(memory[LINE..].iter().map(|word| word.load(Ordering::Relaxed)).next(), Some(1));
}
