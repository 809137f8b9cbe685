// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// siteFolder configures the website.
const siteFolder = "hack/site"

// TestSite_ListsEveryPageOnce compares the website's navigation with the pages.
func TestSite_ListsEveryPageOnce(t *testing.T) {
	var sections []struct {
		Pages []string `json:"pages"`
	}
	if err := json.Unmarshal([]byte(read(t, siteFolder+"/nav.json")), &sections); err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, section := range sections {
		for _, page := range section.Pages {
			listed[docsFolder+"/"+page]++
		}
	}
	for _, page := range documents(t) {
		if strings.HasPrefix(page, docsFolder+"/") && listed[page] != 1 {
			t.Errorf("%s/nav.json lists %s %d times, want once", siteFolder, page, listed[page])
		}
		delete(listed, page)
	}
	for page := range listed {
		t.Errorf("%s/nav.json lists %s, which does not exist", siteFolder, page)
	}
}

// TestIndex_LinksEveryPage checks that docs/README.md or the index of a folder links each page.
func TestIndex_LinksEveryPage(t *testing.T) {
	indexes := map[string]string{}
	for _, page := range documents(t) {
		if strings.HasPrefix(page, docsFolder+"/") && strings.HasSuffix(page, "/README.md") {
			indexes[strings.TrimSuffix(page, "README.md")] = read(t, page)
		}
	}
	top := docsFolder + "/"
	for _, page := range documents(t) {
		if !strings.HasPrefix(page, top) || page == top+"README.md" {
			continue
		}
		folder, name := page[:strings.LastIndex(page, "/")+1], page[strings.LastIndex(page, "/")+1:]
		if !links(indexes[top], strings.TrimPrefix(page, top)) && !links(indexes[folder], name) {
			t.Errorf("neither %sREADME.md nor %sREADME.md links %s", top, folder, page)
		}
	}
}

// links reports whether a page links a file, or a heading in it.
func links(page, file string) bool {
	return strings.Contains(page, "]("+file+")") || strings.Contains(page, "]("+file+"#")
}

// TestSite_PinsPackages checks that the website is built from exact versions with checksums, from the
// registry that npm is configured for.
func TestSite_PinsPackages(t *testing.T) {
	var manifest struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal([]byte(read(t, siteFolder+"/package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	for name, version := range manifest.DevDependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("package.json has %s in version %q, want an exact version", name, version)
		}
	}
	var lock struct {
		Packages map[string]struct {
			Integrity string `json:"integrity"`
			Resolved  string `json:"resolved"`
		} `json:"packages"`
	}
	if err := json.Unmarshal([]byte(read(t, siteFolder+"/package-lock.json")), &lock); err != nil {
		t.Fatal(err)
	}
	if len(lock.Packages) < 2 {
		t.Fatal("package-lock.json has no packages: this test reads the wrong field")
	}
	for name, locked := range lock.Packages {
		if name != "" && (!strings.HasPrefix(locked.Integrity, "sha512-") || locked.Resolved != "") {
			t.Errorf("package-lock.json has %s with integrity %q and address %q, want a checksum and no address", name, locked.Integrity, locked.Resolved)
		}
	}
}
