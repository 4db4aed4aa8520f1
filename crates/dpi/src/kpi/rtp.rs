//! Media streams (RFC 3550).

use super::voice;
use tables::Nanos;

/// A codec that RFC 3551 numbers, or that somebody was told of in SDP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Codec {
    /// As SDP names it.
    pub name: &'static str,
    /// Ticks of its timestamps per second.
    pub clock: u32,
}

/// Codecs that are agreed on by name.
const NAMES: [&str; 22] = [
    "PCMU",
    "PCMA",
    "G722",
    "G729",
    "G723",
    "GSM",
    "GSM-EFR",
    "AMR",
    "AMR-WB",
    "EVS",
    "iLBC",
    "speex",
    "SILK",
    "opus",
    "telephone-event",
    "CN",
    "VP8",
    "VP9",
    "AV1",
    "H264",
    "H265",
    "MP4V-ES",
];

impl Codec {
    /// As SDP has it (RFC 8866 §6.6): "opus/48000/2". `None`: it is unknown here.
    pub fn of_sdp(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let name = parts.next()?;
        let name = NAMES.into_iter().find(|it| it.eq_ignore_ascii_case(name))?;
        let clock = parts.next()?.parse().ok().filter(|clock| (1..=1_000_000).contains(clock))?;
        Some(Self { name, clock })
    }
}

/// The static payload types (RFC 3551 §6, tables 4 and 5). Dynamic ones (96 to 127) mean what SDP says.
pub const fn static_codec(payload_type: u8) -> Option<Codec> {
    let (name, clock) = match payload_type {
        0 => ("PCMU", 8_000),
        3 => ("GSM", 8_000),
        4 => ("G723", 8_000),
        5 => ("DVI4", 8_000),
        6 => ("DVI4", 16_000),
        7 => ("LPC", 8_000),
        8 => ("PCMA", 8_000),
        // Its clock is half of its rate, by an error of old (§4.5.2).
        9 => ("G722", 8_000),
        10 | 11 => ("L16", 44_100),
        12 => ("QCELP", 8_000),
        13 => ("CN", 8_000),
        14 => ("MPA", 90_000),
        15 => ("G728", 8_000),
        16 => ("DVI4", 11_025),
        17 => ("DVI4", 22_050),
        18 => ("G729", 8_000),
        25 => ("CelB", 90_000),
        26 => ("JPEG", 90_000),
        28 => ("nv", 90_000),
        31 => ("H261", 90_000),
        32 => ("MPV", 90_000),
        33 => ("MP2T", 90_000),
        34 => ("H263", 90_000),
        _ => return None,
    };
    Some(Codec { name, clock })
}

/// A packet's header (§5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it carries.
    pub payload_type: u8,
    /// The profile's mark: the first packet of a talk, or the last one of a picture.
    pub marker: bool,
    /// Goes up by one with each packet.
    pub sequence: u16,
    /// When its first sample was taken, in the codec's clock.
    pub timestamp: u32,
    /// Who sends it.
    pub source: u32,
    /// Octets of payload, without padding.
    pub length: u16,
}

impl Header {
    /// Reads one; `None`: version, lengths or padding are wrong.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (&[first, second, s0, s1, t0, t1, t2, t3, a, b, c, d], rest) = datagram.split_first_chunk()?;
        if first >> 6 != 2 {
            return None;
        }
        let mut rest = rest.get(usize::from(first & 0xf) * 4..)?;
        if first & 0x10 != 0 {
            let (&[_, _, l0, l1], after) = rest.split_first_chunk()?;
            rest = after.get(usize::from(u16::from_be_bytes([l0, l1])) * 4..)?;
        }
        let padding = if first & 0x20 == 0 { 0 } else { usize::from(*rest.last()?).max(1) };
        Some(Self {
            payload_type: second & 0x7f,
            marker: second & 0x80 != 0,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            source: u32::from_be_bytes([a, b, c, d]),
            length: rest.len().checked_sub(padding)?.min(usize::from(u16::MAX)) as u16,
        })
    }
}

/// Packets that may be missing in a row before it is another stream (RFC 3550 A.1).
const MAX_DROPOUT: u16 = 3_000;
/// How far a packet may lie back.
const MAX_MISORDER: u16 = 100;

/// One source's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtp {
    /// Who sends it.
    pub source: u32,
    /// What the last packet carried.
    pub payload_type: u8,
    clock: u32,
    /// Extended with the turns that the number has made.
    highest: u32,
    base: u32,
    received: u32,
    /// What came behind a packet with a higher number.
    pub out_of_order: u32,
    /// The number that a new beginning would have (A.1).
    expected_anew: Option<u16>,
    /// Arrival less timestamp, of the last packet, in ticks.
    transit: u32,
    /// Sixteen times the jitter (A.8).
    jitter: u32,
    most_jitter: u32,
    /// What SDP said of it.
    name: Option<&'static str>,
}

const _: () = assert!(size_of::<Rtp>() <= 64);

impl Rtp {
    /// A stream's first packet; `clock`: ticks per second, from the codec. `None`, if neither SDP nor RFC 3551 tells: then there is no jitter.
    pub fn new(header: &Header, clock: Option<u32>, now: Nanos) -> Self {
        let clock = clock.or_else(|| static_codec(header.payload_type).map(|codec| codec.clock)).unwrap_or(0);
        let mut this = Self {
            source: header.source,
            payload_type: header.payload_type,
            clock,
            highest: 0,
            base: 0,
            received: 0,
            out_of_order: 0,
            expected_anew: None,
            transit: 0,
            jitter: 0,
            most_jitter: 0,
            name: None,
        };
        this.begin(header, now);
        this
    }

    /// Likewise, of a codec that SDP has told of.
    pub fn of_codec(header: &Header, codec: Option<Codec>, now: Nanos) -> Self {
        let this = Self::new(header, codec.map(|it| it.clock), now);
        Self { name: codec.map(|it| it.name), ..this }
    }

    fn begin(&mut self, header: &Header, now: Nanos) {
        // One turn before it, so that what lies back has a number, too.
        self.base = 0x1_0000 | u32::from(header.sequence);
        (self.highest, self.received, self.expected_anew) = (self.base, 1, None);
        self.transit = self.arrival(now).wrapping_sub(header.timestamp);
    }

    /// The time in ticks.
    fn arrival(&self, now: Nanos) -> u32 {
        (u128::from(now.0) * u128::from(self.clock) / u128::from(Nanos::SECOND)) as u32
    }

    /// Another packet of this source. Two in a row with numbers far from the others begin anew (A.1): what was counted then is gone.
    pub fn push(&mut self, header: &Header, now: Nanos) {
        let step = header.sequence.wrapping_sub(self.highest as u16);
        if step > MAX_DROPOUT && step < u16::MAX - MAX_MISORDER {
            if self.expected_anew == Some(header.sequence) {
                self.begin(header, now);
            } else {
                self.expected_anew = Some(header.sequence.wrapping_add(1));
            }
            return;
        }
        self.expected_anew = None;
        self.payload_type = header.payload_type;
        if step <= MAX_DROPOUT {
            self.highest = self.highest.wrapping_add(u32::from(step));
        } else {
            self.out_of_order = self.out_of_order.saturating_add(1);
        }
        self.received = self.received.saturating_add(1);
        let transit = self.arrival(now).wrapping_sub(header.timestamp);
        let difference = transit.wrapping_sub(self.transit).cast_signed().unsigned_abs();
        self.transit = transit;
        // An hour is no jitter: the source has set its clock.
        if difference < self.clock.saturating_mul(60) {
            let past = self.jitter.saturating_add(8) >> 4;
            self.jitter = self.jitter.saturating_add(difference).saturating_sub(past);
            self.most_jitter = self.most_jitter.max(self.jitter);
        }
    }

    /// The codec, if SDP or its number tells.
    pub const fn codec(&self) -> Option<Codec> {
        match self.name {
            Some(name) => Some(Codec { name, clock: self.clock }),
            None => static_codec(self.payload_type),
        }
    }

    /// What a call with such losses and such a jitter sounds like ([`voice`]), the network's own delay left out; `None`: the codec
    /// is unknown, or not for the narrow band.
    pub fn opinion(&self) -> Option<f32> {
        let impairment = voice::impairment(self.codec()?.name)?;
        let delay = voice::delay(0.0, self.jitter()? as f32 / 1e3);
        Some(voice::opinion(voice::rating(impairment, self.lost_percent(), delay)))
    }

    /// Packets that came.
    pub const fn received(&self) -> u32 {
        self.received
    }

    /// Packets that should have come (A.3).
    pub const fn expected(&self) -> u32 {
        self.highest.wrapping_sub(self.base).wrapping_add(1)
    }

    /// Packets that were lost (A.3); less than none, if some came twice.
    pub const fn lost(&self) -> i32 {
        self.expected().wrapping_sub(self.received).cast_signed()
    }

    /// The share of packets that were lost, in percent.
    pub fn lost_percent(&self) -> f32 {
        self.lost().max(0) as f32 * 100.0 / self.expected().max(1) as f32
    }

    /// Interarrival jitter (§6.4.1, A.8), in microseconds; `None`: the clock is unknown.
    pub fn jitter(&self) -> Option<u32> {
        self.micros(self.jitter)
    }

    /// The most that it ever was.
    pub fn most_jitter(&self) -> Option<u32> {
        self.micros(self.most_jitter)
    }

    fn micros(&self, sixteenths: u32) -> Option<u32> {
        (u64::from(sixteenths) * 1_000_000 / 16)
            .checked_div(u64::from(self.clock))
            .map(|micros| micros as u32)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn header(sequence: u16, timestamp: u32) -> Header {
        Header { payload_type: 0, marker: false, sequence, timestamp, source: 7, length: 160 }
    }

    fn run(packets: &[(u16, u32, u64)]) -> Rtp {
        let (first, rest) = packets.split_first().unwrap();
        let mut rtp = Rtp::new(&header(first.0, first.1), None, Nanos(first.2 * 1_000_000));
        for (sequence, timestamp, millis) in rest {
            rtp.push(&header(*sequence, *timestamp), Nanos(millis * 1_000_000));
        }
        rtp
    }

    #[test]
    fn headers_are_read_with_all_that_may_be_in_them() {
        let plain = [0x80, 0x88, 0, 5, 0, 0, 0, 160, 0, 0, 0, 7, 1, 2, 3];
        let read =
            Header { payload_type: 8, marker: true, sequence: 5, timestamp: 160, source: 7, length: 3 };
        assert_eq!(Header::parse(&plain), Some(read));
        // A contributing source, an extension of one word, two octets of padding.
        let full =
            [&[0xb1][..], &plain[1..12], &[0, 0, 0, 9], &[0xbe, 0xde, 0, 1, 1, 2, 3, 4], &[1, 2, 3, 0, 2]]
                .concat();
        assert_eq!(Header::parse(&full), Some(read));
        for length in 0..12 {
            assert_eq!(Header::parse(&plain[..length]), None);
        }
        assert_eq!(Header::parse(&full[..20]), None);
        assert_eq!(Header::parse(&[0x40; 20]), None);
        // More padding than there is.
        assert_eq!(Header::parse(&[&[0xa0][..], &plain[1..12], &[9, 9]].concat()), None);
    }

    #[test]
    fn losses_are_counted_over_the_turn_of_the_number() {
        let rtp = run(&[(65_534, 0, 0), (65_535, 160, 20), (1, 480, 60), (3, 800, 100), (2, 640, 101)]);
        assert_eq!((rtp.expected(), rtp.received(), rtp.lost(), rtp.out_of_order), (6, 5, 1, 1));
        assert!((rtp.lost_percent() - 16.666).abs() < 0.01);
        let twice = run(&[(1, 0, 0), (1, 0, 0), (2, 160, 20)]);
        assert_eq!((twice.lost(), twice.codec().map(|it| it.name)), (-1, Some("PCMU")));
    }

    #[test]
    fn what_sdp_says_names_codec_and_clock() {
        assert_eq!(Codec::of_sdp("OPUS/48000/2"), Some(Codec { name: "opus", clock: 48_000 }));
        for wrong in ["", "opus", "opus/", "opus/0", "opus/99999999", "nonsense/8000"] {
            assert_eq!(Codec::of_sdp(wrong), None, "{wrong}");
        }
        let header = Header { payload_type: 96, ..header(1, 0) };
        let amr = Rtp::of_codec(&header, Codec::of_sdp("AMR/8000"), Nanos(0));
        assert_eq!((amr.codec().map(|it| it.name), amr.jitter()), (Some("AMR"), Some(0)));
        // G.107: 5 of 93.2 are the codec's, and 40 ms in buffers cost 0.96: R is 87.2.
        assert!((amr.opinion().unwrap() - 4.27).abs() < 0.01, "{:?}", amr.opinion());
        assert_eq!(Rtp::of_codec(&header, Codec::of_sdp("opus/48000"), Nanos(0)).opinion(), None);
    }

    #[test]
    fn jitter_is_that_of_the_standard() {
        assert_eq!(run(&[(1, 0, 0), (2, 160, 20), (3, 320, 40)]).jitter(), Some(0));
        // Ten milliseconds late, then in time again: 80 ticks twice.
        let rtp = run(&[(1, 0, 0), (2, 160, 30), (3, 320, 40)]);
        let sixteenths = 80 + 80 - ((80 + 8) >> 4);
        assert_eq!(rtp.jitter(), Some(sixteenths * 1_000_000 / 16 / 8_000));
        let unknown = Rtp::new(&Header { payload_type: 96, ..header(1, 0) }, None, Nanos(0));
        assert_eq!((unknown.jitter(), unknown.codec()), (None, None));
        let told = Rtp::new(&Header { payload_type: 96, ..header(1, 0) }, Some(48_000), Nanos(0));
        assert_eq!(told.jitter(), Some(0));
    }

    #[test]
    fn two_packets_far_away_begin_anew_and_one_does_not() {
        let one = run(&[(1, 0, 0), (30_000, 160, 20), (2, 160, 20)]);
        assert_eq!((one.expected(), one.received()), (2, 2));
        let two = run(&[(1, 0, 0), (30_000, 160, 20), (30_001, 320, 40), (30_002, 480, 60)]);
        assert_eq!((two.expected(), two.received()), (2, 2));
    }
}
