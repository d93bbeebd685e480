//! Names that are made to be obeyed by terminals, or to look like something else.

/// A name with what no terminal may see: a sequence that sets the clipboard, a line of its own, overrides of
/// the direction of text, an invisible character, and a control of the upper half. It may have an end of its
/// own, such as that of a file's name.
#[macro_export]
macro_rules! spoof {
    ($name:literal $(, $end:literal)?) => {
        ::core::concat!(
            $name,
            "\u{1b}]52;c;aGk=\u{7}\nspoofed line\r\u{202e}\u{2066}\u{61c}\u{200b}\u{2028}\u{9b}2J"
            $(, $end)?
        )
    };
}
