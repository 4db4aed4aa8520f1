//! A TUN or TAP interface: a kernel network interface whose cable ends in this process.
//!
//! The lab's UE lives behind one: what its programs send comes out of [`Tun::read`] as an IP packet without any link
//! header, and what is given to [`Tun::write`] arrives at them. With a TAP it is whole Ethernet frames, so that anything can be said on
//! a link. Needs `CAP_NET_ADMIN` in the network namespace (or an existing interface that belongs to this user).

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Longest interface name, without the terminating zero (`IFNAMSIZ` - 1).
const LONGEST_NAME: usize = 15;
/// `IFF_TUN | IFF_NO_PI`: IP packets, nothing before them.
const TUN_WITHOUT_HEADER: u16 = 0x0001 | 0x1000;
/// `IFF_TAP | IFF_NO_PI`: Ethernet frames, nothing before them.
const TAP_WITHOUT_HEADER: u16 = 0x0002 | 0x1000;
/// `_IOW('T', 202, int)`.
const TUNSETIFF: ioctl::Opcode = 0x4004_54ca;

/// Why there is no TUN interface.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The kernel would not take the name.
    #[error("{0:?} can't name an interface: 1 to {LONGEST_NAME} bytes, without '/', ':', '%' or spaces")]
    Name(String),
    /// `/dev/net/tun` can't be opened.
    #[error("/dev/net/tun can't be opened: {0} (is the tun module there, and the device visible?)")]
    Device(io::Error),
    /// The interface can't be made or attached to.
    #[error(
        "the interface {name} can't be made: {error} (needs root or CAP_NET_ADMIN, and a name not in use)"
    )]
    Interface {
        /// The interface.
        name: String,
        /// The kernel's answer.
        error: io::Error,
    },
}

/// An open TUN or TAP interface. It vanishes when dropped.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
}

/// The head of the kernel's `struct ifreq`, padded to its size.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; LONGEST_NAME + 1],
    flags: u16,
    rest: [u8; 22],
}
const _: () = assert!(std::mem::size_of::<InterfaceRequest>() == 40);

impl Tun {
    /// Makes the interface, down and without address. With `nonblocking`, reads and writes fail with `WouldBlock` rather
    /// than wait.
    pub fn open(name: &str, nonblocking: bool) -> Result<Self, TunError> {
        Self::attach(name, nonblocking, TUN_WITHOUT_HEADER)
    }

    /// The same for Ethernet frames instead of IP packets: a TAP interface.
    pub fn open_tap(name: &str, nonblocking: bool) -> Result<Self, TunError> {
        Self::attach(name, nonblocking, TAP_WITHOUT_HEADER)
    }

    fn attach(name: &str, nonblocking: bool, kind: u16) -> Result<Self, TunError> {
        let refused =
            |byte: u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/:%".contains(&byte);
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.bytes().any(refused)
            || name == "."
            || name == ".."
        {
            return Err(TunError::Name(name.into()));
        }
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
        if nonblocking {
            flags |= OFlags::NONBLOCK;
        }
        let fd =
            open("/dev/net/tun", flags, Mode::empty()).map_err(|error| TunError::Device(error.into()))?;
        let mut request = InterfaceRequest { name: [0; LONGEST_NAME + 1], flags: kind, rest: [0; 22] };
        for (to, from) in request.name.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        set_interface(fd.as_fd(), &mut request)
            .map_err(|error| TunError::Interface { name: name.into(), error: error.into() })?;
        Ok(Self { fd, name: name.into() })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes one IP packet (or frame) that the kernel sends through the interface; says how long it is. What doesn't fit into
    /// `packet` is cut off.
    pub fn read(&self, packet: &mut [u8]) -> io::Result<usize> {
        retry(|| rustix::io::read(&self.fd, &mut *packet))
    }

    /// Gives the kernel one whole IP packet (or frame), as if the interface had received it.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        let written = retry(|| rustix::io::write(&self.fd, packet))?;
        if written == packet.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

#[allow(unsafe_code)]
fn set_interface(fd: BorrowedFd<'_>, request: &mut InterfaceRequest) -> Result<(), Errno> {
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which is 40 bytes as `InterfaceRequest` is, and keeps no
    // pointer to it. The opcode's own size field says 4 for historical reasons.
    unsafe { ioctl::ioctl(fd, ioctl::Updater::<TUNSETIFF, InterfaceRequest>::new(request)) }
}
