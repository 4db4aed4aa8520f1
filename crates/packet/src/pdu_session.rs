//! The PDU Session Container (TS 38.415 §5.5), which carries the QFI between NG-RAN and UPF in a GTP-U extension
//! header of type 0x85.

use crate::{Layer, Malformed, Qfi};

/// Octets of content of the shortest container: one extension header of four octets less its length and next type.
pub const SHORT_LEN: usize = 2;

/// A container, downlink (PDU Type 0, §5.5.2.1) or uplink (PDU Type 1, §5.5.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PduSession {
    /// DL PDU SESSION INFORMATION: from the UPF to the NG-RAN.
    Downlink(Downlink),
    /// UL PDU SESSION INFORMATION: from the NG-RAN to the UPF.
    Uplink(Uplink),
}

impl PduSession {
    /// The QoS flow of the packet.
    #[inline]
    pub const fn qfi(&self) -> Qfi {
        match self {
            Self::Downlink(d) => d.qfi,
            Self::Uplink(u) => u.qfi,
        }
    }
}

/// DL PDU SESSION INFORMATION.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Downlink {
    /// The QoS flow.
    pub qfi: Qfi,
    /// Reflective QoS Indication: the UE shall derive an uplink rule from this packet.
    pub rqi: bool,
    /// Paging Policy Indicator, 0..=7, if PPP says that there is one.
    pub ppi: Option<u8>,
    /// DL Sending Time Stamp (NTP, 64 bits), if QMP asks for QoS monitoring.
    pub sending_time: Option<u64>,
    /// DL QFI Sequence Number (24 bits), if SNP says that there is one.
    pub sequence: Option<u32>,
    /// DL MBS QFI Sequence Number, if MSNP says that there is one.
    pub mbs_sequence: Option<u32>,
}

/// The three times of a QoS monitoring report (NTP, 64 bits each).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// DL Sending Time Stamp Repeated: what the UPF had sent.
    pub downlink_sent: u64,
    /// DL Received Time Stamp.
    pub downlink_received: u64,
    /// UL Sending Time Stamp.
    pub uplink_sent: u64,
}

/// UL PDU SESSION INFORMATION. Delays are in units of 0.1 ms, as on the wire (§5.5.3.10 and following).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uplink {
    /// The QoS flow.
    pub qfi: Qfi,
    /// QoS monitoring times, if QMP says that they are there.
    pub times: Option<Timestamps>,
    /// DL Delay Result.
    pub downlink_delay: Option<u32>,
    /// UL Delay Result.
    pub uplink_delay: Option<u32>,
    /// UL QFI Sequence Number (24 bits).
    pub sequence: Option<u32>,
    /// N3/N9 Delay Result.
    pub n3n9_delay: Option<u32>,
    /// D1 UL PDCP Delay Result, if the New IE flags say that it is there.
    pub d1_pdcp_delay: Option<u32>,
}

/// Takes fields from the front of the container.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Truncated(Layer::PduSession))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }

    fn u32_if(&mut self, present: bool) -> Result<Option<u32>, Malformed> {
        if present { self.take().map(|o| Some(u32::from_be_bytes(o))) } else { Ok(None) }
    }

    fn u24_if(&mut self, present: bool) -> Result<Option<u32>, Malformed> {
        if !present {
            return Ok(None);
        }
        let [a, b, c] = self.take()?;
        Ok(Some(u32::from_be_bytes([0, a, b, c])))
    }
}

impl PduSession {
    /// Reads the content of the extension header (without its length and next type). Octets behind the fields that
    /// the flags announce are padding, or fields of a later release: they are skipped (§5.5.3.6).
    #[inline]
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader(content);
        let [first, second] = r.take::<2>()?;
        let qfi = Qfi::from_wire(second);
        match (first, first >> 4) {
            // Nothing but a QFI: what nearly every packet has.
            (0x00, _) if second & 0x80 == 0 => {
                Ok(Self::Downlink(Downlink { qfi, rqi: second & 0x40 != 0, ..Downlink::default() }))
            }
            (0x10, _) if second & 0xc0 == 0 => Ok(Self::Uplink(Uplink { qfi, ..Uplink::default() })),
            (_, 0) => Self::parse_downlink(first, second, r),
            (_, 1) => Self::parse_uplink(first, second, r),
            _ => Err(Malformed::Field(Layer::PduSession)),
        }
    }

    /// The QFI of a container of either type, without reading the fields behind it.
    #[inline]
    pub const fn qfi_in(content: &[u8]) -> Result<Qfi, Malformed> {
        match content {
            [0x00..=0x1f, second, ..] => Ok(Qfi::from_wire(*second)),
            [_, _, ..] => Err(Malformed::Field(Layer::PduSession)),
            _ => Err(Malformed::Truncated(Layer::PduSession)),
        }
    }

    fn parse_downlink(first: u8, second: u8, mut r: Reader<'_>) -> Result<Self, Malformed> {
        let ppi = if second & 0x80 != 0 { Some(r.take::<1>()?[0] >> 5) } else { None };
        let sending_time = if first & 8 != 0 { Some(r.u64()?) } else { None };
        Ok(Self::Downlink(Downlink {
            qfi: Qfi::from_wire(second),
            rqi: second & 0x40 != 0,
            ppi,
            sending_time,
            sequence: r.u24_if(first & 4 != 0)?,
            mbs_sequence: r.u32_if(first & 2 != 0)?,
        }))
    }

    fn parse_uplink(first: u8, second: u8, mut r: Reader<'_>) -> Result<Self, Malformed> {
        let times = if first & 8 != 0 {
            Some(Timestamps { downlink_sent: r.u64()?, downlink_received: r.u64()?, uplink_sent: r.u64()? })
        } else {
            None
        };
        let downlink_delay = r.u32_if(first & 4 != 0)?;
        let uplink_delay = r.u32_if(first & 2 != 0)?;
        let sequence = r.u24_if(first & 1 != 0)?;
        let n3n9_delay = r.u32_if(second & 0x80 != 0)?;
        let new_flags = if second & 0x40 != 0 { r.take::<1>()?[0] } else { 0 };
        Ok(Self::Uplink(Uplink {
            qfi: Qfi::from_wire(second),
            times,
            downlink_delay,
            uplink_delay,
            sequence,
            n3n9_delay,
            d1_pdcp_delay: r.u32_if(new_flags & 1 != 0)?,
        }))
    }

    /// Appends the content, padded with zeros so that with length and next type it fills multiples of four octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Self::Downlink(d) => d.emit(out),
            Self::Uplink(u) => u.emit(out),
        }
        while (out.len() - start) % 4 != 2 {
            out.push(0);
        }
    }
}

fn push_u24(out: &mut Vec<u8>, value: u32) {
    let [_, a, b, c] = value.to_be_bytes();
    out.extend([a, b, c]);
}

impl Downlink {
    /// The two octets of a container that carries a QFI and nothing else: what nearly every packet needs.
    #[inline]
    pub const fn short(qfi: Qfi, rqi: bool) -> [u8; SHORT_LEN] {
        [0x00, (rqi as u8) << 6 | qfi.get()]
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.push(
            u8::from(self.sending_time.is_some()) << 3
                | u8::from(self.sequence.is_some()) << 2
                | u8::from(self.mbs_sequence.is_some()) << 1,
        );
        out.push(u8::from(self.ppi.is_some()) << 7 | u8::from(self.rqi) << 6 | self.qfi.get());
        if let Some(ppi) = self.ppi {
            out.push(ppi << 5);
        }
        if let Some(time) = self.sending_time {
            out.extend(time.to_be_bytes());
        }
        if let Some(sequence) = self.sequence {
            push_u24(out, sequence);
        }
        if let Some(sequence) = self.mbs_sequence {
            out.extend(sequence.to_be_bytes());
        }
    }
}

impl Uplink {
    /// The two octets of a container that carries a QFI and nothing else.
    #[inline]
    pub const fn short(qfi: Qfi) -> [u8; SHORT_LEN] {
        [0x10, qfi.get()]
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.push(
            0x10 | u8::from(self.times.is_some()) << 3
                | u8::from(self.downlink_delay.is_some()) << 2
                | u8::from(self.uplink_delay.is_some()) << 1
                | u8::from(self.sequence.is_some()),
        );
        out.push(
            u8::from(self.n3n9_delay.is_some()) << 7
                | u8::from(self.d1_pdcp_delay.is_some()) << 6
                | self.qfi.get(),
        );
        if let Some(times) = self.times {
            out.extend(times.downlink_sent.to_be_bytes());
            out.extend(times.downlink_received.to_be_bytes());
            out.extend(times.uplink_sent.to_be_bytes());
        }
        for delay in [self.downlink_delay, self.uplink_delay].into_iter().flatten() {
            out.extend(delay.to_be_bytes());
        }
        if let Some(sequence) = self.sequence {
            push_u24(out, sequence);
        }
        if let Some(delay) = self.n3n9_delay {
            out.extend(delay.to_be_bytes());
        }
        if let Some(delay) = self.d1_pdcp_delay {
            out.push(1);
            out.extend(delay.to_be_bytes());
        }
    }
}
