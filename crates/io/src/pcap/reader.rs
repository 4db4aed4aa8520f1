//! Reading pcap (the libpcap file format) and pcapng (draft-ietf-opsawg-pcapng), block by block.

use pcap_parser::{
    Block, Linktype, OptionCode, PcapHeader, parse_block_be, parse_block_le, parse_pcap_header,
};
use std::io::Read;

/// The longest block accepted. The longest packet is a quarter of it.
const LONGEST_BLOCK: usize = 1 << 20;
/// Interfaces remembered per section; real captures have a few.
const MOST_INTERFACES: usize = 1024;
/// Block type of a section header, the same in both byte orders.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;

/// Why reading a capture ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The file or pipe failed.
    #[error("reading the capture failed: {0}")]
    Io(String),
    /// Neither pcap nor pcapng.
    #[error("not a capture: it begins with {0:02x?}, which is neither pcap nor pcapng")]
    Format([u8; 4]),
    /// Something in it contradicts the format.
    #[error("the capture is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the block or record begins.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A block that would take too much memory.
    #[error(
        "a block of {length} bytes at byte {offset} of the capture: at most {LONGEST_BLOCK} are accepted"
    )]
    TooLong {
        /// Where it begins.
        offset: u64,
        /// Its length as stated.
        length: u64,
    },
    /// Packets of this kind can't be replayed.
    #[error("the capture holds packets of link type {0}; only Ethernet (1) can be replayed")]
    LinkType(i32),
}

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Nanoseconds since 1970; 0 if the capture doesn't say.
    pub nanos: u64,
    /// The interface within the section; 0 in pcap.
    pub interface: u32,
    /// What its interface is: a link type of the pcap registry, 1 for Ethernet.
    pub link: u16,
    /// How long it was on the wire; more than `data` if the capture cut it.
    pub length: usize,
    /// From the first byte of the link's header.
    pub data: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Pcap { big_endian: bool, nanos: bool, link: u16 },
    PcapNg { big_endian: bool },
}

/// How an interface's timestamps count.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    per_second: u64,
    offset: i64,
}

/// A capture being read. The end of the input is not an error and not final: a file that grows can be followed.
#[derive(Debug)]
pub struct CaptureReader<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    format: Option<Format>,
    interfaces: Vec<Interface>,
    any_link: bool,
    failed: Option<CaptureError>,
}

/// Where the next packet lies in the buffer, so that the borrow can be made last.
struct Found {
    nanos: u64,
    interface: u32,
    link: u16,
    length: usize,
    data: std::ops::Range<usize>,
}

/// What lies next in the input.
enum Step {
    Packet(Found),
    /// Something else, now consumed.
    Other,
    /// Not a whole block.
    End,
}

impl<R: Read> CaptureReader<R> {
    /// Begins to read; nothing is read yet.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            format: None,
            interfaces: Vec::new(),
            any_link: false,
            failed: None,
        }
    }

    /// Packets of any kind are wanted; each says which. Otherwise there is an error if it isn't Ethernet.
    #[must_use]
    pub const fn of_any_link(mut self) -> Self {
        self.any_link = true;
        self
    }

    /// Bytes at the end of the input so far that make no whole block: the capture was cut, or is still being written.
    pub fn unfinished(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next packet, or `None` at the present end. An error is final: it comes again.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.find() {
            Ok(None) => Ok(None),
            Ok(Some(Found { nanos, interface, link, length, data })) => Ok(Some(CapturedPacket {
                nanos,
                interface,
                link,
                length,
                data: self.buffer.get(data).unwrap_or_default(),
            })),
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn find(&mut self) -> Result<Option<Found>, CaptureError> {
        loop {
            let step = match self.format {
                None => self.begin()?,
                Some(Format::Pcap { big_endian, nanos, link }) => self.record(big_endian, nanos, link)?,
                Some(Format::PcapNg { big_endian }) => self.block(big_endian)?,
            };
            match step {
                Step::Packet(found) => return Ok(Some(found)),
                Step::Other => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Makes `n` unread bytes available; false if the input ends before that.
    fn want(&mut self, n: usize) -> Result<bool, CaptureError> {
        if self.buffer.len() - self.start >= n {
            return Ok(true);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let wanted = n.max(64 << 10) - self.buffer.len();
        while self.buffer.len() < n {
            let read = (&mut self.input).take(wanted as u64).read_to_end(&mut self.buffer);
            match read {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(CaptureError::Io(error.to_string())),
            }
        }
        Ok(true)
    }

    /// The first `N` unread bytes; `want` has made sure of them.
    fn peek<const N: usize>(&self, at: usize) -> [u8; N] {
        self.buffer.get(self.start + at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
    }

    fn consume(&mut self, n: usize) -> usize {
        let at = self.start;
        self.start += n;
        self.offset += n as u64;
        at
    }

    /// The number of an interface's kind, if packets of it are wanted.
    fn link(&self, Linktype(link): Linktype) -> Result<u16, CaptureError> {
        let number = u16::try_from(link).map_err(|_| CaptureError::LinkType(link))?;
        let is_wanted = self.any_link || Linktype(link) == Linktype::ETHERNET;
        if is_wanted { Ok(number) } else { Err(CaptureError::LinkType(link)) }
    }

    fn damaged(&self, what: &'static str) -> CaptureError {
        CaptureError::Damaged { offset: self.offset, what }
    }

    /// Recognises the format; a pcap's header is consumed.
    fn begin(&mut self) -> Result<Step, CaptureError> {
        if !self.want(4)? {
            return Ok(Step::End);
        }
        let magic = self.peek::<4>(0);
        if u32::from_be_bytes(magic) == SECTION_HEADER {
            // The section header block itself says which.
            self.format = Some(Format::PcapNg { big_endian: false });
            return Ok(Step::Other);
        }
        if !matches!(
            u32::from_be_bytes(magic),
            0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 // microseconds and nanoseconds, either order
        ) {
            return Err(CaptureError::Format(magic));
        }
        const HEADER: usize = 24;
        if !self.want(HEADER)? {
            return Ok(Step::End);
        }
        let header = self.peek::<HEADER>(0);
        let Ok((_, header)) = parse_pcap_header(&header) else {
            return Err(self.damaged("its pcap header can't be read"));
        };
        let link = self.link(header.network)?;
        let PcapHeader { magic_number, .. } = header;
        let nanos = matches!(magic_number, 0xa1b2_3c4d | 0x4d3c_b2a1);
        self.format = Some(Format::Pcap { big_endian: header.is_bigendian(), nanos, link });
        self.consume(HEADER);
        Ok(Step::Other)
    }

    /// One record of a pcap.
    fn record(&mut self, big_endian: bool, nanos: bool, link: u16) -> Result<Step, CaptureError> {
        const HEADER: usize = 16;
        if !self.want(HEADER)? {
            return Ok(Step::End);
        }
        let field = |i: usize| word(self.peek(i * 4), big_endian);
        let (seconds, fraction, captured, length) =
            (field(0), field(1), field(2) as usize, field(3) as usize);
        if captured > LONGEST_BLOCK / 4 {
            return Err(CaptureError::TooLong { offset: self.offset, length: captured as u64 });
        }
        if !self.want(HEADER + captured)? {
            return Ok(Step::End);
        }
        let at = self.consume(HEADER + captured) + HEADER;
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * if nanos { 1 } else { 1000 };
        Ok(Step::Packet(Found { nanos, interface: 0, link, length, data: at..at + captured }))
    }

    /// One block of a pcapng.
    fn block(&mut self, mut big_endian: bool) -> Result<Step, CaptureError> {
        if !self.want(12)? {
            return Ok(Step::End);
        }
        let section = u32::from_be_bytes(self.peek(0)) == SECTION_HEADER;
        if section {
            big_endian = match u32::from_be_bytes(self.peek(8)) {
                0x1a2b_3c4d => true,
                0x4d3c_2b1a => false,
                _ => return Err(self.damaged("a section's byte order mark is wrong")),
            };
        }
        let length = word(self.peek(4), big_endian) as usize;
        if length > LONGEST_BLOCK {
            return Err(CaptureError::TooLong { offset: self.offset, length: length as u64 });
        }
        if length < 12 || !length.is_multiple_of(4) {
            return Err(self.damaged("a block's length is no multiple of four, or too short"));
        }
        if !self.want(length)? {
            return Ok(Step::End);
        }
        let bytes = self.buffer.get(self.start..self.start + length).unwrap_or_default();
        let parsed = if big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
        let Ok((_, block)) = parsed else { return Err(self.damaged("a block can't be read")) };
        let found = match block {
            Block::SectionHeader(_) => {
                self.format = Some(Format::PcapNg { big_endian });
                self.interfaces.clear();
                None
            }
            Block::InterfaceDescription(description) => {
                let link = self.link(description.linktype)?;
                let Some(per_second) = description.ts_resolution().filter(|&rate| rate > 0) else {
                    return Err(self.damaged("an interface's time resolution is absurd"));
                };
                if self.interfaces.len() >= MOST_INTERFACES {
                    return Err(self.damaged("a section has too many interfaces"));
                }
                // pcap-parser 0.17 takes this option for little-endian always.
                let offset = description.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
                let offset = match offset.map(|option| option.value.first_chunk::<8>()) {
                    None => 0,
                    Some(None) => return Err(self.damaged("an interface's time offset is too short")),
                    Some(Some(&bytes)) if big_endian => i64::from_be_bytes(bytes),
                    Some(Some(&bytes)) => i64::from_le_bytes(bytes),
                };
                self.interfaces.push(Interface { link, per_second, offset });
                None
            }
            Block::EnhancedPacket(packet) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return Err(self.damaged("a packet names an interface that was not described"));
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let captured = (packet.caplen as usize).min(packet.data.len());
                let nanos = interface.nanos(ticks);
                // Fixed fields: type, length, interface, two of time, two lengths.
                Some((nanos, packet.if_id, interface.link, packet.origlen as usize, 28, captured))
            }
            Block::SimplePacket(packet) => {
                let Some(interface) = self.interfaces.first() else {
                    return Err(self.damaged("a packet comes before any interface"));
                };
                let captured = packet.data.len().min(packet.origlen as usize);
                Some((0, 0, interface.link, packet.origlen as usize, 12, captured))
            }
            _ => None,
        };
        let at = self.consume(length);
        Ok(found.map_or(Step::Other, |(nanos, interface, link, length, header, captured)| {
            let data = at + header..at + header + captured;
            Step::Packet(Found { nanos, interface, link, length, data })
        }))
    }
}

impl Interface {
    fn nanos(self, ticks: u64) -> u64 {
        let Self { per_second, offset, .. } = self;
        // 128 bits hold the product of any two of these.
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(per_second);
        let nanos =
            i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(i128::from(offset) * 1_000_000_000);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

fn word(bytes: [u8; 4], big_endian: bool) -> u32 {
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}
