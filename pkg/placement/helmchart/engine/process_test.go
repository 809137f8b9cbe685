// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// asProcess turns this test binary into a rendering process.
const asProcess = "render-in-a-process"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asProcess {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func process(t *testing.T) *helmchart.Process {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &helmchart.Process{Path: path, Args: []string{asProcess}}
}

func TestProcess_Renders(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	rendered, err := process(t).Render(t.Context(), files(t, map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.global.fleetgate.member.name }}}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered.Objects) != 1 || !strings.Contains(string(rendered.Objects[0].JSON), `"west-1"`) || rendered.Chart != "test 0.1.0" {
		t.Errorf("answer = %s %s", rendered.Chart, rendered.Objects)
	}
	_, err = process(t).Render(t.Context(), files(t, map[string]string{"templates/a.yaml": "{{ fail \"no\" }}"}))
	var problem *helmchart.Problem
	if !errors.As(err, &problem) || problem.Chart != "test 0.1.0" {
		t.Errorf("error = %v, want a problem of the chart", err)
	}
}

func TestProcess_EndsHostileCharts(t *testing.T) {
	const lists = "{{ $big := until 1000000 }}"
	cases := map[string]struct {
		template string
		want     string
	}{
		"one that never ends":      {template: strings.Repeat("{{ range $i := until 100000 }}", 5) + strings.Repeat("{{ end }}", 5), want: "not rendered within"},
		"one that takes memory":    {template: "{{ $x := repeat 1000000000 \"x\" }}"},
		"one that collects":        {template: lists + "{{ $all := list }}{{ range $big }}{{ $all = append $all (repeat 100000 \"x\") }}{{ end }}"},
		"one that says much":       {template: "{{ range until 200 }}{{ repeat 100000 \"x\" }}{{ end }}"},
		"one that includes itself": {template: "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}"},
		"one that calls itself":    {template: "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := process(t)
			p.Timeout = 5 * time.Second
			rendered, err := p.Render(t.Context(), files(t, map[string]string{"templates/a.yaml": tc.template}))
			var problem *helmchart.Problem
			if err == nil || !errors.Is(err, helmchart.ErrExhausted) && !errors.As(err, &problem) {
				t.Fatalf("it ended with %v and %v", rendered, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it ended with %v, want %q", err, tc.want)
			}
		})
	}
}

func TestProcess_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := process(t).Render(ctx, files(t, map[string]string{"templates/a.yaml": "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}"}))
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
