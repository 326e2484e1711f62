/// Writes metadata as a library that rustc reads: an archive whose only member is `lib.rmeta`, without any code.
///
/// Programs want libraries for their dependencies, even when nothing is linked.
pub(crate) fn library_of(metadata: &[u8]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    // Name, time, owner, group, mode, size: decimal or octal text in columns of fixed width.
    let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "lib.rmeta/", 0, 0, 0, "644", metadata.len());
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(metadata);
    if metadata.len() % 2 == 1 {
        archive.push(b'\n');
    }
    archive
}

#[cfg(test)]
mod tests {
    use object::read::archive::ArchiveFile;

    use super::*;

    #[test]
    fn the_metadata_is_the_only_member() {
        for metadata in [&b"even"[..], b"odd"] {
            let library = library_of(metadata);
            let archive = ArchiveFile::parse(&*library).unwrap();
            let members: Vec<_> = archive.members().map(Result::unwrap).collect();
            assert_eq!(members.len(), 1);
            assert_eq!(members[0].name(), b"lib.rmeta");
            assert_eq!(members[0].data(&*library).unwrap(), metadata);
        }
    }
}
