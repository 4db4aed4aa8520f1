//! The examination of `[qos]`.

use super::{File, Step, Wrong};
use crate::findings::{Check, way};
use crate::qos::Qos;
use crate::units::InterfaceAddress;
use engine::egress::{Class, ClassError, Plan, plan::standard_classes};
use io::steering::{Control, Group, Steering, SteeringError};
use std::net::IpAddr;
use std::sync::Arc;

impl Check<'_> {
    /// Queues, and the addresses whose control protocols they know.
    pub(super) fn qos(&mut self, file: &File) -> Qos {
        let section = &file.qos;
        let interfaces = file.interface.iter().flat_map(|interface| &interface.addresses);
        let own = interfaces.map(InterfaceAddress::address).chain([file.n4.listen.ip()]);
        let own: Vec<IpAddr> = own.filter(|address| !address.is_unspecified()).collect();
        for (index, class) in section.class.iter().enumerate() {
            if class.weight.is_some() && class.share.is_some() {
                let wrong = Wrong::Exclusive { first: "weight", second: "share" };
                let share = way!["qos", "class", index, "share"];
                self.wrong_with(&way!["qos", "class", index, "weight"], wrong, &share, "`share`");
            }
        }
        let classes: Vec<Class> = section.class.iter().map(Into::into).collect();
        let classes = if classes.is_empty() { standard_classes() } else { classes };
        let egress = Plan::new(classes, own.iter().copied()).unwrap_or_else(|error| {
            let named = match &error {
                ClassError::Twice { second: name, .. } | ClassError::Value { class: name, .. } => Some(name),
                ClassError::Number(_) | ClassError::Rest(_) => None,
            };
            let at = named.and_then(|name| section.class.iter().position(|class| class.name == *name));
            self.queues("class", at, error.to_string());
            Plan::standard([])
        });
        let groups: Vec<Group> = section.group.iter().map(Into::into).collect();
        let control = section.control_queue.then(|| Control::new(own));
        let steering = Steering::new(control, groups).unwrap_or_else(|error| {
            let at = match &error {
                SteeringError::Twice { second, .. } => {
                    section.group.iter().position(|group| group.name == *second)
                }
                SteeringError::Groups(_) => None,
            };
            self.queues("group", at, error.to_string());
            Steering::default()
        });
        Qos { egress: Arc::new(egress), steering }
    }

    fn queues(&mut self, key: &str, at: Option<usize>, what: String) {
        let mut path = vec![Step::from("qos"), Step::from(key)];
        path.extend(at.map(Step::from));
        self.wrong(&path, Wrong::Queues { what });
    }
}
