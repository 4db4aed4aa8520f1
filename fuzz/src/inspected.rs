//! Somebody who looks into packets, and rules that ask him.

use datapath::Places;
use datapath::inspect::{Budget, Direction, Inspection, Inspector, Payload, Verdict};
use session::applications::Lineage;
use session::rules::{Application, Rules};
use std::sync::Arc;
use tables::Nanos;

/// Takes a conversation for what the first octet of its payload says, an application and what it is a part of, and makes up its mind at the third
/// packet; an odd octet it never has enough of.
#[derive(Debug)]
struct FirstOctet;

impl Inspector for FirstOctet {
    type State = u8;
    type Room = ();

    fn room(&self, _: u64) {}

    fn step(&self, (): &mut (), packets: &mut u8, payload: &Payload<'_>, _: Direction, _: Nanos) -> Verdict {
        *packets += 1;
        let lineage = |octet: u8| Lineage::of([octet % 3, octet >> 4].map(|it| Application(it.into())));
        match payload.bytes().first() {
            None => Verdict::None,
            Some(octet) if octet % 2 == 1 || *packets < 3 => Verdict::SoFar(lineage(*octet)),
            Some(octet) => Verdict::Is(lineage(*octet)),
        }
    }
}

/// With so few places that some have to go, and so few packets that some are not enough.
pub fn inspection() -> Inspection {
    Inspection::new(FirstOctet, Budget { packets: 5, bytes: 900 }, Places::new(3))
}

/// The same rules, but that two in three ask for an application.
pub fn asking(rules: &Arc<Rules>) -> Arc<Rules> {
    let mut asking = (**rules).clone();
    for (index, pdr) in asking.pdrs.iter_mut().enumerate() {
        pdr.application = (index % 3 != 2).then_some(Application(index as u16 % 3));
    }
    Arc::new(asking)
}
