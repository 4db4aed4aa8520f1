//! Packets through two workers with sessions of many shapes: whatever arrives, every frame is accounted for under one name, what
//! leaves is well formed, nothing reaches a tunnel that is not its own, and whatever is held, others are served; whatever is translated on
//! N6, and however that changes, nobody leaves by an address that is not his.
#![no_main]

use datapath::{Command, Event, Token, Transition};
use fuzz::user_plane::{self, UserPlane};
use fuzz::{Input, requests, traffic};
use libfuzzer_sys::fuzz_target;
use session::ShardId;
use session::store::Store;
use tables::Nanos;

fuzz_target!(|data: &[u8]| {
    // Half of all inputs meet translation on N6, half a check of tunnels' sources, and half somebody who looks into packets.
    let kind = data.last().copied().unwrap_or_default();
    let check = user_plane::check_source(kind >> 1);
    let inspected = kind & 8 != 0;
    let mut plane = if kind & 1 == 1 {
        UserPlane::translating(check, inspected)
    } else {
        UserPlane::new(check, inspected)
    };
    let mut store = Store::new(requests::config()).expect("the configuration is right");
    sessions(&mut plane, &mut store);
    let mut input = Input::new(data);
    while !input.is_empty() {
        match input.u8() {
            0xff => plane.pass(u64::from(input.u8()) * Nanos::SECOND / 64),
            0xfe => plane.move_shard(ShardId::from_hash(input.u16().into())),
            0xfc..=0xfd => plane.reconfigure(&mut input),
            // Whole frames of the fuzzer's own.
            0xf0..=0xfb => {
                let (worker, port) = (input.below(2), u16::from(input.flag()));
                plane.receive(worker, port, &[input.counted().to_vec()]);
            }
            0xd0..=0xef => traffic::hostile(&mut input, &store, &mut plane),
            _ => traffic::traffic(&mut input, &store, &mut plane),
        }
        plane.settle(&store);
        plane.events.clear();
    }
    plane.serves(&store);
    let all: Vec<_> = store.iter().map(|session| (session.rules().seid, session.rules().place)).collect();
    for (seid, session) in all {
        plane.post(session.shard, Command::Remove { token: Token(1), session });
        let deleted = store.delete(seid).expect("it is there");
        deleted.directory.into_iter().for_each(|change| plane.announce(change));
    }
    plane.end(&store);
});

/// The same sessions every time: everyday ones of each family, and those that a fixed script asks for.
fn sessions(plane: &mut UserPlane, store: &mut Store) {
    let peer = store.attach();
    for shape in 0..64_u8 {
        let script: Vec<u8> = if shape < 16 {
            // Everyday: SEID, shape 0, which addresses and what the downlink FAR does, TEID, IPv4 or IPv6 far end.
            vec![shape, 0, shape.wrapping_mul(37), 16 + shape, shape % 6]
        } else {
            let mut state = 0x9e37_79b9_u32.wrapping_mul(u32::from(shape));
            (0..300)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect()
        };
        let request = requests::establishment(&mut Input::new(&script));
        let Ok(established) = store.establish(&request, peer) else { continue };
        let rules = established.rules;
        let (token, seid) = (Token(shape.into()), rules.seid);
        established.directory.into_iter().for_each(|change| plane.announce(change));
        let (transition, query) = (Transition::default(), Box::default());
        plane.post(rules.place.shard, Command::Install { token, rules, transition, query });
        plane.settle(store);
        if plane.events.drain(..).any(|event| matches!(event, Event::Refused { .. })) {
            // Its far end was one too many.
            let deleted = store.delete(seid).expect("it was just established");
            deleted.directory.into_iter().for_each(|change| plane.announce(change));
        }
    }
}
