//! Which of the known words a mistyped one may have been meant to be.

/// Characters for each of which one changed character still makes a near word.
const CHARACTERS_OF_A_CHANGE: usize = 3;

/// The known word that is nearest to `word`, if at most `most` changes lead to it, and no more than one for
/// three characters. Case counts not; `plain` removes what else does not count.
pub fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
    plain: impl Fn(&str) -> String,
) -> Option<&'a str> {
    let word_plain = plain(word).to_lowercase();
    let limit = most.min(word.chars().count() / CHARACTERS_OF_A_CHANGE);
    let distance = |known: &&str| strsim::damerau_levenshtein(&word_plain, &plain(known).to_lowercase());
    known.into_iter().min_by_key(distance).filter(|near| distance(near) <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_found_and_a_far_one_is_not() {
        let nearest = |word| nearest(word, ["buffer-size", "categories"], 4, |text| text.replace('-', ""));
        assert_eq!(nearest("BufferSize"), Some("buffer-size"));
        assert_eq!(nearest("categoreis"), Some("categories"));
        assert_eq!(nearest("cat"), None);
        assert_eq!(nearest("something-else"), None);
    }
}
