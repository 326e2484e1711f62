//! The bar of `resize` on a terminal in memory.

mod bar;

use indicatif::{InMemoryTerm, ProgressDrawTarget};

/// A terminal of ten lines, and a bar on it for so many pictures.
fn on_terminal(columns: u16, n: usize) -> (InMemoryTerm, indicatif::ProgressBar) {
    let terminal = InMemoryTerm::new(10, columns);
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    (terminal, bar::bar(n, target))
}

#[test]
fn a_bar_counts_pictures_and_names_the_next_one() {
    let (terminal, bar) = on_terminal(80, 4);
    bar.set_message("first.png");
    bar.tick();
    let line = terminal.contents();
    assert!(line.contains(" 0 of 4, ") && line.ends_with("first.png") && !line.contains('='), "{line}");
    bar.inc(2);
    bar.set_message("third.png");
    bar.force_draw();
    let line = terminal.contents();
    assert!(line.contains(" 2 of 4, ") && line.ends_with("third.png"), "{line}");
    assert_eq!(line.matches(['=', '>']).count(), 16, "half of 30 columns, and the tip: {line}");
}

#[test]
fn what_is_printed_stands_above_the_bar_which_leaves_nothing_behind() {
    let (terminal, bar) = on_terminal(80, 2);
    bar.set_message("second.png");
    bar.inc(1);
    bar.tick();
    let printer = terminal.clone();
    bar.suspend(|| {
        assert_eq!(printer.contents(), "", "the bar is not in the way");
        indicatif::TermLike::write_line(&printer, "first.png: 4 x 4 -> out/first.png: 2 x 2").unwrap();
    });
    let lines = terminal.contents();
    let (line, bar_line) = lines.split_once('\n').unwrap_or_else(|| panic!("one line: {lines}"));
    assert_eq!(line, "first.png: 4 x 4 -> out/first.png: 2 x 2");
    assert!(bar_line.contains(" 1 of 2, "), "{bar_line}");
    bar.finish_and_clear();
    assert_eq!(terminal.contents(), line);
}

#[test]
fn a_long_name_is_cut_to_the_terminal() {
    let (terminal, bar) = on_terminal(60, 1);
    bar.set_message("a-very-long-name-of-a-picture-".repeat(9));
    bar.tick();
    let line = terminal.contents();
    assert!(line.lines().count() == 1 && line.chars().count() <= 60 && line.contains("a-very"), "{line}");
}
