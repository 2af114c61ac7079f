// Package pack says what is in a kit's folder, and whether that can run
// elsewhere.
package pack

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ManifestName is the file in the kit's folder that lists the others.
const ManifestName = "manifest.json"

// MaxBytes is how large a kit may be.
const MaxBytes = 60e6

// MaxGlibc is the newest glibc that its programs may need: Debian 12's, older
// than what Ubuntu 24.04 and RHEL 10 have.
const MaxGlibc = "2.36"

// libraries are those that programs may be linked with: glibc's own. Everything
// else is opened at run time.
var libraries = []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2", "libm.so.6",
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

// Manifest lists the files of a kit.
type Manifest struct {
	// Glibc is the oldest that all programs start with.
	Glibc string          `json:"glibc"`
	Files map[string]File `json:"files"` // by path in the folder
}

// File is one file of a kit.
type File struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Make looks at all files of a folder. It fails where they are too large
// together, or a program needs what another machine need not have.
func Make(dir string) (*Manifest, error) {
	m := &Manifest{Glibc: "0", Files: map[string]File{}}
	total := int64(0)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == ManifestName {
			return err
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		f, err := look(path)
		if err != nil {
			return err
		}
		m.Files[filepath.ToSlash(name)] = f
		total += f.Bytes
		glibc, err := needs(path)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if older(m.Glibc, glibc) {
			m.Glibc = glibc
		}
		return nil
	})
	if err == nil && total > MaxBytes {
		err = fmt.Errorf("%s: %d bytes, may be %.0f", dir, total, MaxBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return m, nil
}

// Write writes the manifest into its folder.
func (m *Manifest) Write(dir string) error {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ManifestName), append(text, '\n'), 0o666)
}

// Read reads a folder's manifest.
func Read(dir string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	if len(m.Files) == 0 {
		return nil, fmt.Errorf("%s: lists no files", ManifestName)
	}
	return &m, nil
}

// Verify says which files of a folder are missing or not as they were packed.
func (m *Manifest) Verify(dir string) error {
	var errs []error
	names := make([]string, 0, len(m.Files))
	for name := range m.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f, err := look(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil && f != m.Files[name] {
			err = fmt.Errorf("%s is not as it was packed", name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func look(path string) (File, error) {
	r, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer r.Close()
	h := sha256.New()
	n, err := io.Copy(h, r)
	return File{Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// needs returns the oldest glibc that a file starts with; "0" where it is no
// program or needs none.
func needs(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		var bad *elf.FormatError
		if errors.As(err, &bad) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "0", nil
		}
		return "", err
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		return "", err
	}
	for _, lib := range libs {
		if !slices.Contains(libraries, lib) {
			return "", fmt.Errorf("is linked with %s, which another machine need not have", lib)
		}
	}
	versions, err := f.DynamicVersionNeeds()
	if errors.Is(err, elf.ErrNoSymbols) || err == nil && len(versions) == 0 {
		return "0", nil // linked statically
	}
	if err != nil {
		return "", err
	}
	newest := "0"
	for _, lib := range versions {
		for _, need := range lib.Needs {
			v, ok := strings.CutPrefix(need.Dep, "GLIBC_")
			if !ok {
				return "", fmt.Errorf("needs %s of %s", need.Dep, lib.Name)
			}
			if older(newest, v) {
				newest = v
			}
		}
	}
	if older(MaxGlibc, newest) {
		return "", fmt.Errorf("needs glibc %s, may need %s", newest, MaxGlibc)
	}
	return newest, nil
}

// older compares versions such as 2.2.5 and 2.36. What is no number is newer
// than any.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		n, m := number(x, i), number(y, i)
		if n != m {
			return n < m
		}
	}
	return false
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 1 << 30
	}
	return n
}
