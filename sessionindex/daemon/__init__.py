"""The watcher, and the service that keeps it running."""
