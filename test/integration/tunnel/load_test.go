// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"fleetgate.io/fleetgate/pkg/apiserver/paths"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// patience is the longest time of a request. No part of fleetgate waits this long for another, so a
// request that reaches it was lost.
const patience = 60 * time.Second

// load is users who get and watch an object of the members through the hub.
type load struct {
	client *http.Client
	urls   []string
	// want is in every correct response exactly once.
	want []byte
	// retries is how often a user retries a failed request.
	retries int
	// limit is the longest time of a request.
	limit time.Duration

	// mu guards the fields below it.
	mu       sync.Mutex
	answered int
	// longest is the longest time until a request was answered or rejected, retries included.
	longest time.Duration
	// failures counts errors by text. wrong collects responses that no user may get.
	failures map[string]int
	wrong    []string
}

func newLoad(f *fleet.Fleet, object *corev1.ConfigMap) *load {
	GinkgoHelper()
	l := &load{limit: patience, want: []byte(object.Data["payload"]), failures: map[string]int{}}
	for _, m := range f.Members {
		config, err := clientcmd.BuildConfigFromFlags("", f.MemberKubeconfig(m.Name))
		Expect(err).NotTo(HaveOccurred())
		l.urls = append(l.urls, config.Host+"/api/v1/namespaces/"+object.Namespace+"/configmaps")
		if l.client == nil {
			l.client, err = clientrest.HTTPClientFor(config)
			Expect(err).NotTo(HaveOccurred())
		}
	}
	return l
}

// newLoadAt is newLoad for users of one replica's own endpoint.
func newLoadAt(f *fleet.Fleet, object *corev1.ConfigMap, replica int) *load {
	GinkgoHelper()
	l := newLoad(f, object)
	config, err := clientcmd.BuildConfigFromFlags("", f.HubKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	config.CAData, config.Insecure = nil, true
	l.client, err = clientrest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	for i, m := range f.Members {
		l.urls[i] = f.GatewayAPIOf(replica) + paths.MemberEndpoint + m.Name + "/api/v1/namespaces/" + object.Namespace + "/configmaps"
	}
	return l
}

// run sends that many requests in parallel and watches each member until ctx ends. It returns when
// all requests have ended.
func (l *load) run(ctx context.Context, object string, users int) {
	var running sync.WaitGroup
	defer l.client.CloseIdleConnections()
	defer running.Wait()
	for i := range users {
		running.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.get(ctx, l.urls[n%len(l.urls)]+"/"+object)
			}
		})
	}
	for _, url := range l.urls {
		running.Go(func() {
			for ctx.Err() == nil {
				l.watch(ctx, url+"?watch=true&fieldSelector=metadata.name="+object)
			}
		})
	}
}

// get counts the result of one request. The end of ctx does not cancel it.
func (l *load) get(ctx context.Context, url string) {
	began := time.Now()
	err := l.try(url)
	for again := 0; err != nil && again < l.retries; again++ {
		rest(ctx, time.Duration(again+1)*100*time.Millisecond)
		err = l.try(url)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong *wrongAnswer
	l.longest = max(l.longest, time.Since(began))
	switch {
	case err == nil:
		l.answered++
	case errors.As(err, &wrong), errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		l.wrong = append(l.wrong, err.Error())
	default:
		l.failures[err.Error()]++
	}
}

// wrongAnswer is a response that is neither the object nor a clear error.
type wrongAnswer struct{ what string }

func (w *wrongAnswer) Error() string { return w.what }

func (l *load) try(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		if bytes.Count(body, l.want) != 1 {
			return &wrongAnswer{fmt.Sprintf("200 with another object: %d bytes", len(body))}
		}
		return nil
	}
	said := strings.TrimSpace(string(body)) // The hub's own text about an unavailable gateway is not JSON.
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil {
		said = status.Message
	}
	if said == "" || response.StatusCode < http.StatusInternalServerError {
		return &wrongAnswer{fmt.Sprintf("%s: %.300s", response.Status, body)}
	}
	return fmt.Errorf("%d %s", response.StatusCode, said)
}

// watch reads a watch until it ends for any reason.
func (l *load) watch(ctx context.Context, url string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	if response, err := l.client.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	rest(ctx, 100*time.Millisecond)
}

// rest is the wait of a user before the next attempt.
func rest(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// soFar returns how many requests were answered.
func (l *load) soFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// String summarizes the requests.
func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%d answered, the slowest result after %s\n", l.answered, l.longest.Round(time.Millisecond))
	for _, failure := range slices.Sorted(maps.Keys(l.failures)) {
		fmt.Fprintf(&text, "%d times %s\n", l.failures[failure], failure)
	}
	return text.String()
}
