//! A datapath in which packets are looked into in one of several ways.

use super::{InspectionConfig, InspectionError};
use crate::flows::{self, SUPPLY, divided, room_for};
use crate::forward;
use crate::path::{Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::scene::Scene;
use config::InspectionSection;
use session::SessionRef;
use session::applications::Applications;
use session::classifier::Classifier;
use session::rules::{Application, Rules, Tunnel};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tables::clock::Tsc;
use upf::Detector;

/// What rules ask for, in order of precedence.
pub const ASKED: [&str; 2] = ["youtube", "facebook"];

/// Whether packets are looked into, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looks {
    /// `[inspection] enabled = false`.
    Off,
    /// Once more, to see how far two of the same differ.
    OffAgain,
    /// As shipped, and no rule asks.
    Unasked,
    /// Rules ask for applications.
    Asked,
    /// `[inspection] always = true`, and no rule asks.
    Always,
}

impl Looks {
    /// All of them, that to which others are compared first.
    pub const ALL: [Self; 5] = [Self::Off, Self::OffAgain, Self::Unasked, Self::Asked, Self::Always];

    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::OffAgain => "off-again",
            Self::Unasked => "unasked",
            Self::Asked => "asked",
            Self::Always => "always",
        }
    }

    /// Whether flows are looked into, unless their rules prevent it.
    pub const fn looks(self) -> bool {
        matches!(self, Self::Asked | Self::Always)
    }
}

/// How many rules a session has for one direction, not counting those for applications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Divided {
    /// One.
    Plain,
    /// Three with filters: packets are classified flow by flow in any case.
    Classified,
}

impl Divided {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Classified];

    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Classified => "classified",
        }
    }
}

/// A datapath, and what its sessions' rules ask for.
pub struct Plane {
    /// The datapath.
    pub path: Path,
    /// In which way it looks.
    pub looks: Looks,
    rules: Divided,
    asked: Vec<Application>,
}

impl Plane {
    /// Without sessions yet. Flows are forgotten as `idle` says; `None`: never.
    pub fn new(
        scene: Scene,
        looks: Looks,
        rules: Divided,
        (flows, idle): (usize, Option<u16>),
        clock: Tsc,
    ) -> Result<Self, InspectionError> {
        let is_off = matches!(looks, Looks::Off | Looks::OffAgain);
        let section = InspectionSection {
            enabled: !is_off,
            always: looks == Looks::Always,
            ..InspectionSection::default()
        };
        let mut names = Applications::default();
        let detector = Detector::new(&section, &mut names)?;
        let number =
            |name: &'static str| names.detected(name.as_bytes()).ok_or(InspectionError::Unknown(name));
        let asked = if looks == Looks::Asked {
            ASKED.map(number).into_iter().collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        // Those of newcomers' addresses that have six octets and more.
        let pool = ipnet::Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0x60, 0, 0, 0, 0, 0, 0), 32);
        let fib = scene.wider_network(pool.into()).map_err(PathError::from)?.fib();
        let path = Path::within(scene, clock, |config| {
            room_for(flows, config);
            config.fib = fib;
            config.flow_idle = idle.unwrap_or(config.flow_idle);
            config.flow_supply = SUPPLY;
            config.inspection = detector.map(|detector| detector.inspection(&section));
        })?;
        Ok(Self { path, looks, rules, asked })
    }

    /// What a session's rules are, the scene's servers given. Rules for applications come before all others.
    fn rules(&self) -> impl Fn(SessionRef, Tunnel, Ipv4Addr) -> Rules + use<> {
        let (servers, divided_by, asked) = (self.path.scene().servers(), self.rules, self.asked.clone());
        move |place, tunnel, ue| {
            let mut rules = divided(forward::rules(place, tunnel, ue), |uplink| {
                let others = match divided_by {
                    Divided::Plain => vec![Box::default()],
                    Divided::Classified => flows::filters(servers, uplink),
                };
                asked.iter().map(|_| Box::default()).chain(others).collect()
            });
            for pdr in &mut rules.pdrs {
                pdr.application = asked.get(pdr.precedence as usize).copied();
            }
            rules.classifier = Classifier::new(&rules.pdrs);
            rules
        }
    }

    /// Sessions whose addresses and servers are the scene's.
    pub fn establish(
        &mut self,
        sessions: usize,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Subscriber>, PathError> {
        let rules = self.rules();
        self.path.add_sessions(sessions, rules, progress)
    }

    /// A session whose UE has this address, and this number.
    pub fn establish_for(&mut self, number: u32, address: IpAddr) -> Result<Subscriber, PathError> {
        let scene = self.path.scene();
        let (place, tunnel) = self.path.assign(address);
        let subscriber = Subscriber { teid: tunnel.teid, ue: Ipv4Addr::from(number) };
        let mut rules = scene.adapt(self.rules()(place, tunnel, subscriber.ue), subscriber.ue);
        (rules.ue_ipv4, rules.ue_ipv6) = match address {
            IpAddr::V4(address) => (Some(address), None),
            IpAddr::V6(address) => (None, Some(ipnet::Ipv6Net::new_assert(address, 64).trunc())),
        };
        self.path.install(rules)?;
        Ok(subscriber)
    }

    /// An error while conversations are looked into.
    pub fn none_is_open(&self) -> Result<(), InspectionError> {
        match self.path.datapath.inspected().open {
            0 => Ok(()),
            open => Err(InspectionError::Open(open)),
        }
    }
}

/// Room for so many known flows, and as many that come and go.
pub fn room(config: &InspectionConfig) -> (usize, Option<u16>) {
    (config.flows.max(1 << 23), Some(config.idle))
}
