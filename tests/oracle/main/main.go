// Command oracle answers what kube-scheduler would decide for pods on a snapshot.
//
// Requests are JSON lines on stdin, answers JSON lines on stdout, one for each, in order and flushed before the next
// request is read; the fields are those of `graphsched evaluate`. Everything that decides is the scheduler's own code:
// its cache, queue, nominator, framework and plugins. Only the informers are ours (fixed lists, informers.go), and what
// an API server does to objects on the way in (objects.go).
//
// Invariant: every line is answered, and no request leaves anything behind for the next.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

// Request is one line of the input.
type Request struct {
	ID           json.RawMessage   `json:"id"`
	Objects      []json.RawMessage `json:"objects"`
	Pod          json.RawMessage   `json:"pod"`
	Pods         []json.RawMessage `json:"pods"`
	Preempt      bool              `json:"preempt"`
	FeatureGates map[string]bool   `json:"featureGates"`
	Config       json.RawMessage   `json:"config"`
	Normalized   bool              `json:"normalized"`
}

// Answer is one line of the output.
type Answer struct {
	ID       json.RawMessage `json:"id"`
	Results  []*Result       `json:"results"`
	Warnings []string        `json:"warnings"`
	Error    string          `json:"error,omitempty"`
}

// checked says whether every result is held to SchedulePod.
var checked bool

func main() {
	flag.BoolVar(&checked, "check", false, "hold every result to the scheduler's own SchedulePod")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(input io.Reader, output io.Writer) error {
	reader := bufio.NewReaderSize(input, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			encoded, failed := json.Marshal(answer(line))
			if failed != nil {
				return failed
			}
			if _, failed = output.Write(append(encoded, '\n')); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// answer gives the answer to one line, whatever is in it.
func answer(line []byte) (reply *Answer) {
	reply = &Answer{ID: json.RawMessage("null"), Results: []*Result{}, Warnings: []string{}}
	defer func() {
		if recovered := recover(); recovered != nil {
			reply.Error = fmt.Sprintf("panic: %v", recovered)
		}
	}()
	var request Request
	if err := json.Unmarshal(line, &request); err != nil {
		reply.Error = fmt.Sprintf("not a request: %v", err)
		return reply
	}
	if request.ID != nil {
		reply.ID = request.ID
	}
	if err := run(&request, reply); err != nil {
		reply.Error = err.Error()
	}
	return reply
}

func run(request *Request, reply *Answer) error {
	if request.Preempt {
		return errors.New("preempt: not supported")
	}
	reset, err := setGates(request.FeatureGates)
	if err != nil {
		return err
	}
	defer reset()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	trial, err := newTrial(ctx, request, &reply.Warnings)
	if err != nil {
		return err
	}
	defer trial.close()
	return trial.runAll(ctx, &reply.Results)
}

// setGates sets the feature gates of one request; the result sets them back.
func setGates(wanted map[string]bool) (func(), error) {
	gates := utilfeature.DefaultMutableFeatureGate
	known := gates.GetAll()
	before := map[string]bool{}
	for name := range wanted {
		if _, found := known[featuregate.Feature(name)]; !found {
			return nil, fmt.Errorf("featureGates: unknown gate %s", name)
		}
		before[name] = gates.Enabled(featuregate.Feature(name))
	}
	if err := gates.SetFromMap(wanted); err != nil {
		return nil, fmt.Errorf("featureGates: %w", err)
	}
	return func() { utilruntime.Must(gates.SetFromMap(before)) }, nil
}
