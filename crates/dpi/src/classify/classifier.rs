//! Who is asked about a message, and in which order.

use crate::Protocol;
use crate::classify::message::Carrier;
use crate::classify::recogniser::{Mark, Places, Recogniser, Strength};
use crate::protocols::recognisers;

/// Recognisers at most: a flow remembers those in question in a set of bits.
pub const MOST: usize = 512;

/// A set of recognisers, by number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Set([u64; MOST / 64]);

impl Set {
    pub fn insert(&mut self, number: u16) {
        if let Some(word) = self.0.get_mut(usize::from(number / 64)) {
            *word |= 1 << (number % 64);
        }
    }

    pub fn remove(&mut self, number: u16) {
        if let Some(word) = self.0.get_mut(usize::from(number / 64)) {
            *word &= !(1 << (number % 64));
        }
    }

    pub fn has(&self, number: u16) -> bool {
        self.0.get(usize::from(number / 64)).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let words = self.0;
        (0_u16..).zip(words).flat_map(|(place, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
                word &= word - 1;
                Some(place * 64 + bit)
            })
        })
    }
}

/// Knows all recognisers. Immutable; one serves all workers.
#[derive(Debug)]
pub struct Classifier {
    /// From strong to weak.
    recognisers: Vec<&'static Recogniser>,
    by_carrier: [Tables; 3],
}

/// Of one carrier.
#[derive(Debug, Default)]
struct Tables {
    /// Where a first octet's recognisers begin in `askable`; one more than there are octets.
    begins: Vec<u32>,
    askable: Vec<(u16, Mark)>,
    /// By port, then from strong to weak.
    ports: Vec<(u16, u16)>,
}

impl Tables {
    fn new(recognisers: &[&Recogniser], carrier: Carrier) -> Self {
        let numbered = || {
            let all = (0_u16..).zip(recognisers);
            all.filter(move |(_, it)| it.carriers.has(carrier))
        };
        let (mut begins, mut askable) = (vec![0], Vec::new());
        for octet in 0..=255 {
            let strays = numbered().filter(|(_, it)| it.places == Places::Anywhere && it.first.allows(octet));
            askable.extend(strays.map(|(number, it)| (number, it.mark)));
            begins.push(askable.len() as u32);
        }
        let mut ports: Vec<_> =
            numbered().flat_map(|(number, it)| it.ports.iter().map(move |port| (*port, number))).collect();
        ports.sort_unstable();
        Self { begins, askable, ports }
    }

    fn of_octet(&self, octet: u8) -> &[(u16, Mark)] {
        let edge = |place: usize| self.begins.get(place).map_or(0, |at| *at as usize);
        let octet = usize::from(octet);
        self.askable.get(edge(octet)..edge(octet + 1)).unwrap_or_default()
    }

    fn of_port(&self, port: u16) -> &[(u16, u16)] {
        let first = self.ports.partition_point(|it| it.0 < port);
        let rest = self.ports.get(first..).unwrap_or_default();
        let count = rest.iter().take_while(|it| it.0 == port).count();
        rest.get(..count).unwrap_or_default()
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Classifier {
    /// With all that are built in.
    pub fn new() -> Self {
        Self::of(recognisers().collect())
    }

    /// With these.
    pub(crate) fn of(mut recognisers: Vec<&'static Recogniser>) -> Self {
        debug_assert!(recognisers.len() <= MOST, "a flow's set has room for {MOST}");
        recognisers.truncate(MOST);
        recognisers.sort_by_key(|it| it.strength);
        let by_carrier = [Carrier::Tcp, Carrier::Udp, Carrier::Sctp].map(|it| Tables::new(&recognisers, it));
        Self { recognisers, by_carrier }
    }

    pub(crate) fn recogniser(&self, number: u16) -> Option<&'static Recogniser> {
        self.recognisers.get(usize::from(number)).copied()
    }

    fn tables(&self, carrier: Carrier) -> &Tables {
        let [tcp, udp, sctp] = &self.by_carrier;
        match carrier {
            Carrier::Tcp => tcp,
            Carrier::Udp => udp,
            Carrier::Sctp => sctp,
        }
    }

    /// Those who may be shown a message of these octets on whatever port, from strong to weak.
    #[inline]
    pub(crate) fn of_octets<'c>(
        &'c self,
        carrier: Carrier,
        octets: &'c [u8],
    ) -> impl Iterator<Item = u16> + 'c {
        let all = octets.first().map_or(&[][..], |first| self.tables(carrier).of_octet(*first));
        all.iter().filter(|(_, mark)| mark.fits(octets)).map(|(number, _)| *number)
    }

    /// Those that are usual on this port.
    pub(crate) fn of_port(&self, carrier: Carrier, port: u16) -> impl Iterator<Item = u16> + '_ {
        self.tables(carrier).of_port(port).iter().map(|it| it.1)
    }

    /// What is usual on this port, where that is more than a shape's opinion.
    pub(crate) fn guess(&self, carrier: Carrier, port: u16) -> Option<Protocol> {
        let mut usual = self.of_port(carrier, port).filter_map(|number| self.recogniser(number));
        usual.find(|it| it.strength < Strength::Shape || it.ports.len() == 1).map(|it| it.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::First;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let mut set = Set::default();
        for number in [0, 63, 64, 200, 511] {
            set.insert(number);
        }
        set.insert(600);
        set.remove(64);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 200, 511]);
        assert!(set.has(63) && !set.has(64) && !set.is_empty());
    }

    /// Who is asked on its usual ports only has some, and is asked there.
    #[test]
    fn who_needs_its_port_is_asked_there_and_nowhere_else() {
        let classifier = Classifier::new();
        let (mut at_home, mut asked) = (0, 0);
        for (number, it) in
            (0..).zip(&classifier.recognisers).filter(|(_, it)| it.places == Places::UsualPorts)
        {
            at_home += 1;
            let carriers =
                [Carrier::Tcp, Carrier::Udp, Carrier::Sctp].into_iter().filter(|of| it.carriers.has(*of));
            for (carrier, port) in
                carriers.flat_map(|carrier| it.ports.iter().map(move |port| (carrier, *port)))
            {
                assert!(
                    classifier.of_port(carrier, port).any(|known| known == number),
                    "{}",
                    it.protocol.name()
                );
                asked += 1;
            }
            assert!(!it.ports.is_empty(), "{}", it.protocol.name());
        }
        assert!(at_home >= 20 && asked > at_home, "{at_home}, {asked}");
    }

    #[test]
    fn who_can_begin_so_is_asked_the_strong_first() {
        let classifier = Classifier::new();
        for carrier in [Carrier::Tcp, Carrier::Udp, Carrier::Sctp] {
            for octet in 0..=255 {
                for message in [vec![octet], vec![octet; 100], [&[octet][..], &[0; 99]].concat()] {
                    let asked: Vec<_> = classifier
                        .of_octets(carrier, &message)
                        .filter_map(|it| classifier.recogniser(it))
                        .collect();
                    assert!(asked.is_sorted_by_key(|it| it.strength));
                    let all = recognisers();
                    let anywhere = all.filter(|it| it.carriers.has(carrier) && it.places == Places::Anywhere);
                    assert_eq!(asked.len(), anywhere.filter(|it| it.allows(&message)).count());
                }
            }
        }
        assert!(classifier.of_port(Carrier::Tcp, 22).any(|it| {
            classifier
                .recogniser(it)
                .is_some_and(|it| it.protocol == Protocol::Ssh && it.first == First::Of(b"S"))
        }));
        assert_eq!(classifier.guess(Carrier::Tcp, 22), Some(Protocol::Ssh));
    }
}
