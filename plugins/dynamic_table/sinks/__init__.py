"""Streaming sinks as processes that outlive their tasks: started, watched through files, stopped."""
