//! Which interface a frame arrives at, and what parsing has to know of it.

use super::fib::Fib;
use super::interface::Roles;
use super::sources::Sources;

/// What parsing needs of one interface.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    pub ipv6: u128,
    pub mac: u64,
    pub ipv4: u32,
    pub interface: u16,
    pub roles: Roles,
}

#[derive(Clone, Debug, Default)]
pub struct PortTable {
    pub untagged: Option<Station>,
    pub tagged: Vec<(u16, Station)>,
    /// All of the port's interfaces have the N6 role.
    pub n6: bool,
}

/// Which interface a frame arrives at, by port and VLAN: compiled from a FIB.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    pub ports: Vec<PortTable>,
    pub(crate) sources: Sources,
}

impl Ingress {
    /// Compiles a FIB.
    pub fn new(fib: &Fib) -> Self {
        let mut ports: Vec<PortTable> = Vec::new();
        for (index, interface) in fib.interfaces().iter().enumerate() {
            let port = interface.port as usize;
            if ports.len() <= port {
                ports.resize_with(port + 1, PortTable::default);
            }
            let station = Station {
                ipv6: interface.ipv6().map_or(0, u128::from),
                mac: interface.mac.to_u64(),
                ipv4: interface.ipv4().map_or(0, u32::from),
                interface: index as u16,
                roles: interface.roles,
            };
            if let Some(table) = ports.get_mut(port) {
                table.n6 =
                    interface.roles.n6 && (table.n6 || (table.untagged.is_none() && table.tagged.is_empty()));
                match interface.vlan {
                    None => table.untagged = Some(station),
                    Some(vlan) => table.tagged.push((vlan, station)),
                }
            }
        }
        Self { ports, sources: Sources::new(fib) }
    }

    /// Whether most of what arrives at the port leaves in a tunnel, and so with more headers than it came with.
    pub fn leads_into_tunnels(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|table| table.n6)
    }
}
