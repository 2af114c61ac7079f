package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modules are packages with one kind of result each.
var modules = map[string]string{
	"good": `package x
import "testing"
func TestGood(t *testing.T) { t.Log("quiet") }
func TestAway(t *testing.T) {
	t.Log("something else")
	t.Skipf("needs a GPU:\n%s", "none here")
}
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Skip("strange") })
	t.Run("two", func(t *testing.T) { t.SkipNow() })
}
func TestLate(t *testing.T) {
	defer t.Log("behind it")
	t.Skip("needs a GPU here")
}
func TestNamed(t *testing.T) { t.Skip("odd") }`,
	"bad": `package x
import "testing"
func TestBad(t *testing.T) { t.Run("part", func(t *testing.T) { t.Error("wrong") }) }
func TestGood(t *testing.T) { t.Log("quiet") }`,
	"panics": `package x
import "testing"
func TestPanics(t *testing.T) { t.Log("before"); panic("boom") }`,
	"unbuilt": `package x
import "testing"
func TestUnbuilt(t *testing.T) { undefined() }`,
	"hangs": `package x
import "testing"
func TestHangs(t *testing.T) { select {} }`,
	"exits": `package x
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { m.Run(); fmt.Println("left open"); os.Exit(3) }
func TestGood(t *testing.T) {}`,
	"none": `package x`,
}

// build makes the command and a module of the packages.
func build(t *testing.T) (command, dir string) {
	t.Helper()
	dir = t.TempDir()
	command = filepath.Join(dir, "testrun")
	out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com\n"), 0o666))
	for name, src := range modules {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o777))
		file := "x_test.go"
		if name == "none" {
			file = "x.go"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, file), []byte(src), 0o666))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "expected"), []byte("# comment\n^needs a GPU # none\n^example.com/good TestNamed: odd$\n"), 0o666))
	return command, dir
}

func TestRuns(t *testing.T) {
	command, dir := build(t)
	for _, c := range []struct {
		name string
		args string
		ci   string
		code int
		says []string
		not  []string

		tally string
	}{
		{"skips are told", "./good", "", 0, []string{
			"ok  \texample.com/good",
			"5 skipped:\n",
			"unexpected: needs a GPU: none here\n      example.com/good TestAway",
			"unexpected: strange\n      example.com/good TestParts/one",
			"unexpected: no reason given\n      example.com/good TestParts/two",
		}, []string{"quiet", "something else", "=== RUN", "PASS"}, "2 0 5\n"},
		{"skips that are expected", "-expected expected ./good", "", 0, []string{"  needs a GPU: none here\n", "  needs a GPU here\n", "  odd\n", "unexpected: strange"}, []string{"behind it"}, "2 0 5\n"},
		{"a skip that is not, where all is required", "-expected expected ./good", "true", 1, []string{"2 unexpected skips"}, nil, "2 0 5\n"},
		{"none of those that are not", "-expected expected -run Away ./good", "true", 0, []string{"1 skipped:"}, []string{"unexpected"}, "0 0 1\n"},
		{"a failure", "./bad ./good", "", 1, []string{"x_test.go:3: wrong", "--- FAIL: TestBad/part", "FAIL\texample.com/bad", "5 skipped"}, []string{"quiet"}, "3 2 5\n"},
		{"a panic", "./panics", "", 1, []string{"x_test.go:3: before", "panic: boom", "FAIL\texample.com/panics"}, nil, "0 1 0\n"},
		{"a package that is not built", "./unbuilt ./good", "", 1, []string{"undefined: undefined", "FAIL\texample.com/unbuilt [build failed]", "ok  \texample.com/good"}, nil, "2 1 5\n"},
		{"a time limit", "-timeout 200ms ./hangs", "", 1, []string{"panic: test timed out after 200ms", "FAIL\texample.com/hangs"}, nil, "0 1 0\n"},
		{"a package that fails behind its tests", "./exits", "", 1, []string{"left open", "FAIL\texample.com/exits"}, nil, "1 1 0\n"},
		{"no tests", "./none", "", 0, []string{"[no test files]"}, nil, "0 0 0\n"},
		{"no such flag", "./good -nonsense", "", 1, []string{"not defined: -nonsense"}, nil, ""},
		{"no such file", "-expected nowhere ./good", "", 2, []string{"testrun: open nowhere"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(command, strings.Fields(c.args)...)
			cmd.Dir = dir
			tally := filepath.Join(t.TempDir(), "tally")
			cmd.Env = append(os.Environ(), "CI="+c.ci, "KVGATE_REQUIRE=", "GOFLAGS=", "KVGATE_TALLY="+tally)
			out, _ := cmd.CombinedOutput()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", out)
			for _, s := range c.says {
				require.Contains(t, string(out), s)
			}
			for _, s := range c.not {
				require.NotContains(t, string(out), s)
			}
			if c.tally != "" {
				got, err := os.ReadFile(tally)
				require.NoError(t, err)
				require.Equal(t, c.tally, string(got))
			}
		})
	}
}

func TestReasonsThatAreNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "expected")
	require.NoError(t, os.WriteFile(path, []byte("fine\n(\n"), 0o666))
	_, err := readReasons(path)
	require.ErrorContains(t, err, path+":2: ")
}
