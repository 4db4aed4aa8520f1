//! Batches: what may be in them, and what the processor makes of them.

use accel::cpu::Executor;
use accel::task::{Batch, Decoding, Hashes, Misfit, Packet, Task, Verdict};
use accel::{Kind, conformance};
use ran::ldpc::{BaseGraph, Code, Effort, Encoder};
use ran::nea2::{self, Bearer, Count, Direction, Key};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const EFFORT: Effort = Effort { iterations: 8, early_stop: true };

fn packet(count: u32) -> Packet {
    Packet {
        key: [0x17; 16],
        count: Count(count),
        bearer: Bearer::new(9).unwrap(),
        direction: Direction::Downlink,
    }
}

#[test]
fn packets_are_ciphered_each_where_it_lies() {
    let lengths = [0, 1, 16, 17, 63, 64, 1458, 5];
    let mut batch = Batch::new(1, Task::Nea2);
    for (at, length) in lengths.into_iter().enumerate() {
        batch.push_packet(packet(at as u32), &vec![at as u8; length]).unwrap();
    }
    assert_eq!(batch.output().len(), batch.data().len());
    let before = batch.clone();
    Executor::new().execute(&mut batch).unwrap();
    assert_eq!((batch.items(), batch.data()), (before.items(), before.data()));
    for (at, length) in lengths.into_iter().enumerate() {
        let mut data = vec![at as u8; length];
        nea2::apply(nea2::Packet {
            key: &Key::new([0x17; 16]),
            count: Count(at as u32),
            bearer: Bearer::new(9).unwrap(),
            direction: Direction::Downlink,
            data: &mut data,
        });
        assert_eq!(batch.packet(at), Some(&data[..]), "packet {at}");
    }
    assert_eq!(batch.packet(lengths.len()), None);
    assert_eq!((batch.answer(0), batch.number(0), batch.verdict(0)), (None, None, None));
}

#[test]
fn more_packets_than_are_prepared_at_a_time() {
    let mut random = SmallRng::seed_from_u64(3);
    let mut batch = conformance::batch_of(Task::Nea2, 1, 100, &mut || random.next_u64()).unwrap();
    Executor::new().execute(&mut batch).unwrap();
    for (at, descriptor) in batch.descriptors().enumerate() {
        let mut data = batch.data()[descriptor.place..descriptor.place + descriptor.length].to_vec();
        nea2::apply(nea2::Packet {
            key: &Key::new(descriptor.packet.key),
            count: descriptor.packet.count,
            bearer: descriptor.packet.bearer,
            direction: descriptor.packet.direction,
            data: &mut data,
        });
        assert_eq!(batch.packet(at), Some(&data[..]));
    }
}

#[test]
fn blocks_are_encoded_and_found_again() {
    let code = Code::new(BaseGraph::Two, 36).unwrap();
    let infos: Vec<Vec<u8>> = (0..3u8).map(|at| vec![at * 37; code.info_bits().div_ceil(8)]).collect();
    let mut encode = Batch::new(1, Task::LdpcEncode(code));
    infos.iter().for_each(|info| encode.push(info).unwrap());
    let mut executor = Executor::new();
    executor.execute(&mut encode).unwrap();
    let decoding = Decoding::new(code, code.coded_bits(), 0, EFFORT).unwrap();
    let mut decode = Batch::new(2, Task::LdpcDecode(decoding));
    for (at, info) in infos.iter().enumerate() {
        let coded = encode.answer(at).unwrap();
        let mut expected = vec![0; coded.len()];
        Encoder::new().encode(code, info, &mut expected).unwrap();
        assert_eq!(coded, expected);
        let llr = |at: usize| if coded[at / 8] >> (7 - at % 8) & 1 == 1 { -20 } else { 20 };
        decode.push_llrs(&(0..code.coded_bits()).map(llr).collect::<Vec<i8>>()).unwrap();
    }
    executor.execute(&mut decode).unwrap();
    for (at, info) in infos.iter().enumerate() {
        assert_eq!(decode.answer(at), Some(&info[..]));
        let verdict = decode.verdict(at).unwrap();
        assert!(verdict.checks_hold && verdict.iterations < 8, "{verdict:?}");
    }
    assert_eq!((decode.answer(3), decode.verdict(3), encode.verdict(0)), (None, None, None));
}

#[test]
fn a_block_of_which_nothing_was_received_is_one_too() {
    let code = Code::new(BaseGraph::One, 2).unwrap();
    let decoding = Decoding::new(code, 0, 0, Effort { iterations: 300, early_stop: false }).unwrap();
    let mut batch = Batch::new(1, Task::LdpcDecode(decoding));
    batch.push_llrs(&[]).unwrap();
    batch.push_llrs(&[]).unwrap();
    Executor::new().execute(&mut batch).unwrap();
    for at in 0..2 {
        assert_eq!(batch.verdict(at), Some(Verdict { iterations: 300, checks_hold: true }));
        assert_eq!(batch.answer(at), Some(&[0; 6][..]));
    }
}

#[test]
fn each_further_hash_changes_the_answer_and_so_does_each_octet() {
    let item: [u8; 24] = std::array::from_fn(|at| at as u8);
    let mut found: Vec<u32> = (1..=4).map(|n| accel::hash::hash(&item, Hashes::new(n).unwrap())).collect();
    for at in 0..24 {
        let mut other = item;
        other[at] ^= 0x80;
        found.push(accel::hash::hash(&other, Hashes::new(1).unwrap()));
    }
    let mut different = found.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), found.len());
    let mut batch = Batch::new(1, Task::Hash(Hashes::new(3).unwrap()));
    batch.push(&item).unwrap();
    Executor::new().execute(&mut batch).unwrap();
    assert_eq!(batch.number(0), Some(found[2]));
}

#[test]
fn what_does_not_fit_is_not_in_a_batch() {
    let code = Code::new(BaseGraph::One, 5).unwrap();
    assert_eq!(Hashes::new(0), Err(Misfit::Hashes(0)));
    assert_eq!(Hashes::new(5), Err(Misfit::Hashes(5)));
    assert_eq!(Decoding::new(code, 331, 0, EFFORT), Err(Misfit::Received { given: 331, most: 330 }));
    assert_eq!(Decoding::new(code, 330, 101, EFFORT), Err(Misfit::Fillers { given: 101, most: 100 }));
    let endless = Effort { iterations: 65_536, early_stop: true };
    assert_eq!(Decoding::new(code, 330, 0, endless), Err(Misfit::Iterations(65_536)));

    let mut batch = Batch::new(1, Task::Hash(Hashes::new(1).unwrap()));
    assert_eq!(batch.push(&[0; 23]), Err(Misfit::Length { given: 23, needed: 24 }));
    assert_eq!(batch.push_packet(packet(0), &[1]), Err(Misfit::Task));
    assert_eq!(batch.push_llrs(&[1]), Err(Misfit::Task));
    let mut batch = Batch::new(1, Task::Nea2);
    assert_eq!(batch.push(&[0; 32]), Err(Misfit::Task));
    let mut batch = Batch::new(1, Task::LdpcDecode(Decoding::new(code, 330, 0, EFFORT).unwrap()));
    assert_eq!(batch.push(&[0; 330]), Err(Misfit::Task));
    assert_eq!(batch.push_llrs(&[0; 331]), Err(Misfit::Length { given: 331, needed: 330 }));
    let mut batch = Batch::new(1, Task::LdpcEncode(code));
    assert_eq!(batch.push(&[0; 13]), Err(Misfit::Length { given: 13, needed: 14 }));
    assert!(batch.is_empty() && batch.output().is_empty());
}

#[test]
fn a_batch_is_used_again_for_another_task() {
    let mut random = SmallRng::seed_from_u64(4);
    let mut random = || random.next_u64();
    let mut batch = conformance::batch(Kind::Nea2, 5, 4, &mut random).unwrap();
    let code = Code::new(BaseGraph::Two, 2).unwrap();
    batch.clear(6, Task::LdpcEncode(code));
    batch.push(&[0xff; 3]).unwrap();
    assert_eq!((batch.ticket, batch.len(), batch.data().len(), batch.output().len()), (6, 1, 0, 13));
}
