"""What the tantivy index remembers and how it is kept; the only importer of tantivy."""
