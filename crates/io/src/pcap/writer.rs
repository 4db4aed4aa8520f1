//! Writing pcapng.

use std::io::{self, Write};

/// Which way a packet went (`epb_flags`, bits 0 and 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by us.
    In,
    /// Sent by us.
    Out,
}

/// Writes one section of pcapng in this machine's byte order, nanosecond timestamps.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    output: W,
    interfaces: u32,
    written: u64,
    block: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINK_ETHERNET: u16 = 1;
const LINK_RAW: u16 = 101;

const OPT_COMMENT: u16 = 1;
const OPT_SHB_USERAPPL: u16 = 4;
const OPT_IF_NAME: u16 = 2;
const OPT_IF_TSRESOL: u16 = 9;
const OPT_EPB_FLAGS: u16 = 2;

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture.
    pub fn new(output: W) -> io::Result<Self> {
        let mut writer = Self { output, interfaces: 0, written: 0, block: Vec::new() };
        writer.start(SECTION_HEADER);
        writer.block.extend_from_slice(&0x1a2b_3c4du32.to_ne_bytes());
        writer.block.extend_from_slice(&1u16.to_ne_bytes());
        writer.block.extend_from_slice(&0u16.to_ne_bytes());
        // The section's length is not known yet.
        writer.block.extend_from_slice(&u64::MAX.to_ne_bytes());
        writer.option(OPT_SHB_USERAPPL, concat!("millrace ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.finish(true)?;
        Ok(writer)
    }

    /// Describes an Ethernet interface; the number to give to [`CaptureWriter::write`].
    pub fn interface(&mut self, name: &str) -> io::Result<u32> {
        // No limit to the length of packets.
        self.describe(name, LINK_ETHERNET, 0)
    }

    /// Describes an interface whose packets begin with their IP header, and are cut to so many bytes.
    pub fn ip_interface(&mut self, name: &str, limit: u16) -> io::Result<u32> {
        self.describe(name, LINK_RAW, limit.into())
    }

    /// Describes an interface of any kind, by its link type in the pcap registry.
    pub fn any_interface(&mut self, name: &str, link: u16) -> io::Result<u32> {
        self.describe(name, link, 0)
    }

    fn describe(&mut self, name: &str, link: u16, limit: u32) -> io::Result<u32> {
        self.start(INTERFACE_DESCRIPTION);
        self.block.extend_from_slice(&link.to_ne_bytes());
        self.block.extend_from_slice(&0u16.to_ne_bytes());
        self.block.extend_from_slice(&limit.to_ne_bytes());
        self.option(OPT_IF_NAME, name.as_bytes());
        // Timestamps count 10^-9 s.
        self.option(OPT_IF_TSRESOL, &[9]);
        self.finish(true)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes one packet, whole. `nanos` counts from 1970. A comment longer than 65,535 bytes is cut.
    pub fn write(
        &mut self,
        interface: u32,
        nanos: u64,
        direction: Option<Direction>,
        packet: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let Ok(length) = u32::try_from(packet.len()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a packet of 4 GiB"));
        };
        self.begin_packet(interface, nanos, packet, length, length);
        if let Some(direction) = direction {
            self.flags(direction);
        }
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes());
        }
        self.finish(direction.is_some() || comment.is_some())
    }

    /// Writes a packet as it was captured: perhaps the first bytes only of one that was `length` bytes long.
    pub fn write_captured(
        &mut self,
        interface: u32,
        nanos: u64,
        bytes: &[u8],
        length: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let (Ok(captured), Ok(length)) = (u32::try_from(bytes.len()), u32::try_from(length)) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a packet of 4 GiB"));
        };
        self.begin_packet(interface, nanos, bytes, captured, length.max(captured));
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes());
        }
        self.finish(comment.is_some())
    }

    /// Writes the first bytes of a packet that was `length` bytes long.
    pub fn write_cut(
        &mut self,
        interface: u32,
        nanos: u64,
        direction: Direction,
        bytes: &[u8],
        length: u32,
    ) -> io::Result<()> {
        let bytes = bytes.get(..length as usize).unwrap_or(bytes);
        self.begin_packet(interface, nanos, bytes, bytes.len() as u32, length);
        self.flags(direction);
        self.finish(true)
    }

    fn begin_packet(&mut self, interface: u32, nanos: u64, bytes: &[u8], captured: u32, length: u32) {
        self.start(ENHANCED_PACKET);
        for field in [interface, (nanos >> 32) as u32, nanos as u32, captured, length] {
            self.block.extend_from_slice(&field.to_ne_bytes());
        }
        self.block.extend_from_slice(bytes);
        self.pad();
    }

    fn flags(&mut self, direction: Direction) {
        let flags = match direction {
            Direction::In => 1u32,
            Direction::Out => 2,
        };
        self.option(OPT_EPB_FLAGS, &flags.to_ne_bytes());
    }

    /// Bytes written so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Hands buffered bytes on.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// The output, with all that was written.
    pub fn into_inner(self) -> W {
        self.output
    }

    fn start(&mut self, block_type: u32) {
        self.block.clear();
        self.block.extend_from_slice(&block_type.to_ne_bytes());
        self.block.extend_from_slice(&[0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.block.extend_from_slice(&code.to_ne_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_ne_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// Ends the options, if there are any, and writes the block with its length at both ends.
    fn finish(&mut self, options: bool) -> io::Result<()> {
        if options {
            self.block.extend_from_slice(&[0; 4]);
        }
        let length = (self.block.len() as u32 + 4).to_ne_bytes();
        if let Some(place) = self.block.get_mut(4..8) {
            place.copy_from_slice(&length);
        }
        self.block.extend_from_slice(&length);
        self.output.write_all(&self.block)?;
        self.written += self.block.len() as u64;
        Ok(())
    }
}
