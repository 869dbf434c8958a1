package actors

const crashChildDir = "TASARD_ACTORS_CRASH_CHILD"

func crashChild(string) int { return 0 }
