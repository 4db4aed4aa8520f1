//! Where applications' traffic begins and ends, as control is told.

use super::inspected::{OF_ONE, PLENTY, asked, asking, back, inspecting, towards};
use super::*;
use datapath::inspect::Detection;
use session::rules::Application;

/// Rules for application 1, downlink and uplink, that tell of it.
fn telling() -> Rules {
    let mut rules = asking();
    let urr = Urr { application_starts: true, application_stops: true, ..Urr::counting(UrrId(1)) };
    rules.urrs = [urr].into();
    for pdr in rules.pdrs.iter_mut().filter(|pdr| pdr.application == Some(Application(1))) {
        pdr.urrs = [0].into();
    }
    rules
}

impl Worker {
    /// What control is told within the next tenth of a second: whether it begins, by which rule, and the conversation.
    fn detections(&mut self) -> Vec<Detection> {
        for _ in 0..20 {
            self.tick(0);
        }
        let told = |event| match event {
            Event::Applications(told) => told.into_vec(),
            _ => Vec::new(),
        };
        self.events().into_iter().flat_map(told).collect()
    }
}

fn telling_worker(config: Config) -> Worker {
    let mut worker = asked(config);
    worker.install(&Arc::new(telling()), Transition::default());
    worker
}

#[test]
fn a_conversation_is_told_once_by_the_rule_that_asks() {
    let mut worker = telling_worker(inspecting(PLENTY, 10));
    worker.process(1, &[1, 1, 1, 1].map(|third| towards(1000, Some(third))));
    // Application 2 has a rule that tells nobody; nobody is told of no application.
    worker.process(1, &[2, 2, 2].map(|third| towards(1001, Some(third))));
    worker.process(1, &[0, 0, 3].map(|third| towards(1002, Some(third))));
    let told = worker.detections();
    let [detection] = &told[..] else { panic!("{told:?}") };
    assert_eq!((detection.begins, detection.pdr, detection.application), (true, PdrId(21), Application(1)));
    assert_eq!((detection.seid, detection.protocol.0), (telling().seid, 17));
    assert_eq!(detection.ends, [(UE.into(), Some(1000)), (HOST.into(), Some(443))]);
    // The other direction is the same conversation, though its rule discards the packet.
    worker.process(0, &[back(1000, 1)]);
    assert_eq!((worker.dropped(Reason::FarDrop), worker.detections()), (1, vec![]));
    for _ in 0..40 {
        worker.tick(2);
    }
    assert_eq!(worker.detections(), [Detection { begins: false, ..*detection }]);
    let inspection = worker.datapath.counters().inspection;
    assert_eq!((inspection.begun, inspection.ended, inspection.untold), (1, 1, 0));
}

/// What is found to be of an application and is discarded for that has begun, too: the SMF is told once, as long as there is a flow of it.
#[test]
fn what_is_discarded_is_told() {
    let mut worker = telling_worker(inspecting(PLENTY, 10));
    for _ in 0..5 {
        worker.process(0, &[back(1000, 1)]);
    }
    assert_eq!((worker.sent(1).len(), worker.dropped(Reason::FarDrop)), (1, 4));
    let told = worker.detections();
    let [detection] = &told[..] else { panic!("{told:?}") };
    assert_eq!((detection.begins, detection.pdr), (true, PdrId(11)));
}

/// An update asks for it in the midst of conversations whose packets are served by their flows.
#[test]
fn who_asks_late_is_told_with_the_next_packet() {
    let mut worker = asked(inspecting(PLENTY, 10));
    for port in [1000, 1001] {
        worker.process(1, &[1; 5].map(|third| towards(port, Some(third))));
    }
    assert_eq!((worker.detections(), worker.datapath.counters().flows.served), (vec![], 4));
    worker.install(&Arc::new(telling()), Transition::default());
    assert_eq!(worker.detections(), []);
    // The first of them opens the rule's books, and would be judged for that.
    for port in [1000, 1001] {
        worker.process(1, &[towards(port, Some(1))]);
        let told = worker.detections();
        assert!(told.iter().map(|it| (it.begins, it.ends[0].1)).eq([(true, Some(port))]), "{told:?}");
    }
    assert_eq!(worker.datapath.counters().inspection.shown, 6, "nobody looks into them once more");
}

#[test]
fn what_changes_its_rule_or_its_worker_ends_once() {
    let mut worker = telling_worker(inspecting(PLENTY, 10));
    worker.process(1, &[1; 3].map(|third| towards(1000, Some(third))));
    let told = worker.detections();
    assert_eq!(told.len(), 1);
    // The rule that it was told by goes, and with its next packet the conversation.
    let mut plain = asking();
    plain.pdrs = plain.pdrs[3..].into();
    plain.pdrs[1].filters = [SdfFilter { protocol: Some(17), ..SdfFilter::default() }].into();
    worker.install(&Arc::new(plain), Transition::default());
    worker.process(1, &[towards(1000, Some(1))]);
    assert_eq!(worker.detections(), [Detection { begins: false, ..told[0] }]);
    // What moves with its shard is told where it is.
    worker.install(&Arc::new(telling()), Transition::default());
    worker.process(1, &[1; 3].map(|third| towards(1001, Some(third))));
    let shard = worker.datapath.release(place(UE).shard).unwrap();
    let mut there = Worker::of(inspecting(PLENTY, 10), 2, |_| false);
    there.datapath.adopt(shard);
    assert!(worker.detections().is_empty());
    assert!(there.detections().iter().map(|it| it.begins).eq([true]));
    there.apply(Command::Remove { token: Token(9), session: place(UE) });
    for _ in 0..40 {
        there.tick(2);
    }
    assert!(there.detections().iter().map(|it| it.begins).eq([false]));
}

#[test]
fn so_many_beginnings_are_told_in_a_second() {
    let config = Config { application_rate: 20, ..inspecting(PLENTY, 1000) };
    let mut worker = telling_worker(config);
    for port in 1000..1010 {
        worker.process(1, &[1; 3].map(|third| towards(port, Some(third))));
    }
    let inspection = worker.datapath.counters().inspection;
    assert_eq!((inspection.begun, inspection.untold), (2, 8), "a burst is a tenth of a second's worth");
    // What is not told goes by its rule all the same.
    worker.sent(0);
    assert_eq!(worker.leave_into(&[towards(1009, Some(1))]), [OF_ONE]);
}
