package targets

import (
	"fmt"
	"os/user"
	"regexp"
	"strconv"
)

// Android's user ids, system/core/libcutils/include/private/android_filesystem_config.h (Android 14): each of a phone's
// users has its own range, and in it, each app.
const (
	perUser      = 100000 // AID_USER_OFFSET
	appStart     = 10000  // AID_APP_START
	isolatedZero = 99000  // AID_ISOLATED_START
	zygoteZero   = 90000  // AID_APP_ZYGOTE_START: isolated processes that an app's own zygote starts
)

// services are the users that a phone's own programs run under.
var services = map[string]int{"root": 0, "system": 1000, "radio": 1001, "bluetooth": 1002, "graphics": 1003, "audio": 1005,
	"camera": 1006, "wifi": 1010, "media": 1013, "drm": 1019, "nfc": 1027, "mediacodec": 1046, "cameraserver": 1047,
	"shell": 2000, "nobody": 9999}

var appName = regexp.MustCompile(`^u([0-9]+)_(ai|a|i)([0-9]+)$`)

// ParseUser understands a user id, and names: u0_a123 (an app), u0_i7 (an isolated process), u0_ai7 (one of an app's own
// zygote), u10_system, those of a phone's services, and the machine's own users.
func ParseUser(s string) (uid int, err error) {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil && n < 1<<32-1 {
		return int(n), nil
	}
	if m := appName.FindStringSubmatch(s); m != nil {
		of, err1 := strconv.Atoi(m[1])
		n, err2 := strconv.Atoi(m[3])
		start, end := appStart, 20000
		switch m[2] {
		case "i":
			start, end = isolatedZero, perUser
		case "ai":
			start, end = zygoteZero, isolatedZero
		}
		if err1 != nil || err2 != nil || of > 20000 || start+n >= end {
			return 0, fmt.Errorf("user %q: there is no such app: numbers go to %d", s, end-start-1)
		}
		return of*perUser + start + n, nil
	}
	of, name := 0, s
	if m := regexp.MustCompile(`^u([0-9]{1,5})_([a-z]+)$`).FindStringSubmatch(s); m != nil {
		of, _ = strconv.Atoi(m[1])
		name = m[2]
	} else if u, err := user.Lookup(s); err == nil {
		return strconv.Atoi(u.Uid)
	}
	if id, ok := services[name]; ok {
		return of*perUser + id, nil
	}
	return 0, fmt.Errorf("user %q: want a number, an app as u0_a123, or a name that this machine knows", s)
}
