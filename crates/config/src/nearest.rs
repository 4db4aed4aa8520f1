//! What was probably meant: names in a sentence, and the one that a slip was nearest to.

/// The names between backquotes and commas.
pub(super) fn listed(names: &[String]) -> String {
    let mut text = String::new();
    for (i, name) in names.iter().enumerate() {
        text.push_str(match i {
            0 => "",
            _ if i + 1 == names.len() => " and ",
            _ => ", ",
        });
        text.push('`');
        text.push_str(name);
        text.push('`');
    }
    text
}

/// The known name that `typed` is most likely a slip of.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The work grows with the product of both lengths, and no name is as long as that.
    let typed: String = typed.to_lowercase().replace('_', "-").chars().take(64).collect();
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&typed, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let known = ["mtu", "queues", "network-instances"];
        let nearest = |typed: &str, known: &[&'static str; 3]| nearest(typed, known.iter().copied());
        // Neighbours that changed places are one slip: as many as a short word may have.
        assert_eq!(nearest("mut", &known), Some("mtu"));
        assert_eq!(nearest("queue", &known), Some("queues"));
        assert_eq!(nearest("network_instance", &known), Some("network-instances"));
        assert_eq!(nearest("Qeueus", &known), Some("queues"), "two");
        assert_eq!(nearest("eeusuq", &known), None, "more than a third of it");
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest(&"network-instances".repeat(1000), &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
