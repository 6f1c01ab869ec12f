# The largest waits of a folded profile: its stacks grouped by their last frame.
#
#   awk -f largest_waits.awk profile.folded
#
# A line is "process;pool;frame;...;wait COUNT", COUNT in microseconds of one thread's time. Stacks of threads that
# only wait for work begin with "[idle];": they are told apart, since nobody waits for them.

{
    microseconds = $NF
    stack = substr($0, 1, length($0) - length($NF) - 1)
    total += microseconds
    if (stack ~ /^\[idle\];/) {
        idle += microseconds
        next
    }
    last_frame = stack
    sub(/^.*;/, "", last_frame)
    if (last_frame ~ /^\[wait: /)
        waits[last_frame] += microseconds
}

END {
    if (total == 0) {
        print "no thread time in this profile"
        exit 0
    }
    printf "the largest waits, of %.1f s of thread time:\n", total / 1e6
    for (rank = 1; rank <= 5; rank++) {
        largest = ""
        for (wait in waits)
            if (largest == "" || waits[wait] > waits[largest] || (waits[wait] == waits[largest] && wait < largest))
                largest = wait
        if (largest == "")
            break
        printf "  %5.1f %%  %8.2f s  %s\n", 100 * waits[largest] / total, waits[largest] / 1e6, largest
        delete waits[largest]
    }
    printf "  %5.1f %%  %8.2f s  threads that only wait for work\n", 100 * idle / total, idle / 1e6
}
